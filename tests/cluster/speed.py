"""Turns on three servers beside turns on SQLite, measured in turn in one run."""

from collections.abc import Iterator
from contextlib import ExitStack

from bench.cluster import GOAL_CPU, GOAL_P50, GOAL_RATE, compare, measure_sides, open_sides
from tests.proof_table import Row, Trial, make_row

PEOPLE = 16


def prove(trial: Trial) -> Iterator[Row]:
    with ExitStack() as stack:
        trial.tell("speed: the gateways begin")
        sides = dict(open_sides(stack, trial.folder / "speed", ("SQLite", "NATS R3")))
        trial.tell("speed: turns")
        measure_sides([*sides.values()], trial.amount(9, 1), PEOPLE, trial.amount(3, 1))
        found = compare(sides["NATS R3"], sides["SQLite"])
    is_judged = not trial.is_short  # one round says nothing
    rows = (
        ("turns a second on three servers", f">= {GOAL_RATE}", f"{found.rate:.2f}", found.rate >= GOAL_RATE),
        ("half of the turns within, beside that", f"<= {GOAL_P50:g}x", f"{found.p50:.1f}x", found.p50 <= GOAL_P50),
        ("CPU of a turn, gateway and servers", f"<= {GOAL_CPU:g}x", f"{found.cpu:.1f}x", found.cpu <= GOAL_CPU),
    )
    for what, goal, came, is_met in rows:
        yield make_row(what, goal if is_judged else "-", came, is_met or not is_judged)
