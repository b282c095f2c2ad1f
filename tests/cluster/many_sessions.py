"""Very many conversations on one server, beside a thousand: its memory, how soon it is back, a turn, a search."""

from collections.abc import Iterator
from contextlib import ExitStack

from bench.sessions import FEW, MANY, SECONDS, open_side
from tests.proof_table import Row, Trial, make_row

MOST_BYTES, LONGEST_RESTART = 1500, 10.0
LONGEST_SEARCH = 1.0
AS_LONG = 1.5  # as with few, on a machine that does other things too
SLOW_RESTART, SLOW_TURN = 6, 4  # so many times longer may these take in a short run, whose parts run beside each other


def prove(trial: Trial) -> Iterator[Row]:
    count = trial.amount(MANY, 2 * FEW)
    with ExitStack() as stack:
        sides = []
        for name, sessions in (("few", FEW), ("many", count)):
            trial.tell(f"sessions: {sessions:,} are made")
            sides.append(open_side(stack, trial.folder / f"{name}-sessions", sessions))
        few, many = sides
        for number in range(trial.amount(5, 1)):
            trial.tell(f"sessions: turns, round {number + 1}")
            for side in sides:
                side.measure(trial.amount(int(SECONDS), 1))
        made = f"{many.made_in:.0f} s"
        yield make_row("sessions on one server, made within", f"{count:,}", f"{many.count:,}, {made}")
        most = trial.amount(MOST_BYTES, 10 * MOST_BYTES)  # of a few, the most is the server's own
        came = f"{many.memory:,.0f} bytes"
        yield make_row("memory of the server, a session", f"<= {most} bytes", came, many.memory <= most)
        soon = trial.amount(1, SLOW_RESTART) * LONGEST_RESTART
        came = f"{many.restart:.1f} s"
        yield make_row("killed, and ready again within", f"<= {soon:.0f} s", came, many.restart <= soon)
        yield make_row("a gateway on it is ready within", "-", f"{many.start:.1f} s")
        ratio = many.turn / few.turn
        came = f"{ratio:.2f}x ({many.turn * 1e3:.0f} ms)"
        alike = trial.amount(1, SLOW_TURN) * AS_LONG
        yield make_row(f"a turn, beside {FEW:,} sessions", f"<= {alike:g}x", came, ratio <= alike)
        search = many.search()
        yield make_row("a search", f"<= {LONGEST_SEARCH:.0f} s", f"{search * 1e3:.0f} ms", search <= LONGEST_SEARCH)
