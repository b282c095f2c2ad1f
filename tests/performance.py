"""`./x bench [NAME...]`: what the gateway costs, beside others: the tables of docs/performance.md, or those named.

`--short` measures less, and writes nothing. It makes the environments of what it compares with by itself, below the
user's cache directory: other agents, and the last release, which is the newest tag `v*`.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import start, trips, turn, whole
from bench.processes import Life
from gateway.config.home import get_process_environment

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
COLUMNS = ("what", "floor", "peer", "last release", "ours", "goal")
NONE = "-"
QUIET_SHARE = 0.25  # of the processors: what else runs takes less
MOST_ROOMS = 12


@dataclass(frozen=True)
class Row:
    """One line of a table; `peer` names who it is of, where there are several."""

    what: str
    ours: str
    goal: str = NONE
    release: str = NONE
    peer: str = NONE
    floor: str = NONE

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.what, self.floor, self.peer, self.release, self.ours, self.goal)


@dataclass(frozen=True)
class Bench:
    """The measured trees: this one, and that of the last release, if it exists."""

    release: Path | None
    is_short: bool

    @property
    def trees(self) -> list[Path]:
        return [ROOT, *([self.release] if self.release else [])]

    @property
    def rounds(self) -> int:
        return 1 if self.is_short else 3


def cache() -> Path:
    given = get_process_environment()
    return Path(given.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-gateway-bench"


def find_release() -> Path | None:
    """The tree of the newest tag, with an environment of its own."""
    command = ["git", "-C", str(ROOT), "tag", "--list", "v*", "--sort=-version:refname"]
    tags = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    if not tags:
        return None
    tree = cache() / tags[0]
    if not (tree / ".venv" / "bin" / "hermes-gateway").exists():
        shutil.rmtree(tree, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", "--branch", tags[0], str(ROOT), str(tree)], check=True)
        subprocess.run([str(tree / "x"), "--help"], stdout=subprocess.DEVNULL, check=True)
    return tree


def measure_messages(bench: Bench) -> Iterator[Row]:
    """Processor time of a message, of all processes."""
    costs = {tree: whole.Costs() for tree in bench.trees}
    for _ in range(bench.rounds):
        for tree in bench.trees:
            turns, quiet = (8, 0.5) if bench.is_short else (60, 2.0)
            whole.measure_processor(tree, costs[tree], turns, quiet)
    for people in whole.SHARES:
        ours, *release = (f"{statistics.median(costs[tree].processor[people]):.2f} ms" for tree in bench.trees)
        yield Row(
            f"processor time of a message, people at a time: {people}", ours, release=release[0] if release else NONE
        )


def count(bench: Bench) -> Iterator[Row]:
    """Count values that no busy machine changes; with the goal, or the bound once that is reached."""
    scenes = ("model",) if bench.is_short else ()
    ours, *release = (trips.count(tree, scenes) for tree in bench.trees)
    bounds = trips.read_bounds()
    for row, value in ours.items():
        goal = bounds[row].most if bounds[row].goal is None else bounds[row].goal
        before = f"{release[0][row]:,g}" if release and row in release[0] else NONE
        yield Row(f"`{row}`", f"{value:,g}", f"{goal:,g}", before)


def list_stages(_bench: Bench) -> Iterator[Row]:
    """How often functions of each room are entered for a message of 16 people."""
    trips.count(ROOT, ["many"])
    rooms = Counter[str]()
    for name, times in trips.FUNCTIONS["many.entries"].items():
        rooms[trips.room_of(name)] += times
    messages = whole.MANY * trips.TURNS_EACH
    for room, times in rooms.most_common(MOST_ROOMS):
        yield Row(f"`gateway/{room}`", f"{times / messages:,.0f}")
    yield Row("all", f"{rooms.total() / messages:,.0f}", "800")


def measure_start(bench: Bench) -> Iterator[Row]:
    """From exec to ready, and the memory of all processes, with ten hooks; Hermes is the peer."""
    sides = start.sides(bench.is_short)
    if bench.release:
        program = str(bench.release / ".venv" / "bin" / "hermes-gateway")
        sides.append(start.Side("release", [program, "run"], "", start.our_ready))
    found = {name: lives for name, (_counted, *lives) in start.measure(sides, start.HOOKS, bench.rounds).items()}
    bare = start.commands(bench.rounds)["python"]

    def row(what: str, column: str, unit: str, goal: str, floor: str = NONE) -> Row:
        def cell(name: str) -> str:
            lives: Sequence[Life] = found.get(name, ())
            return f"{start.median(lives, column):.2f} {unit}" if lives else NONE

        return Row(what, cell("hermes-gateway"), goal, cell("release"), cell("hermes-agent"), floor)

    yield row("ready", "ready", "s", "0.30 x the peer", f"{bare:.2f} s")
    yield row("gone after SIGTERM", "stop", "s", NONE)
    yield row("memory, idle (PSS)", "pss", "MB", NONE)
    yield row("memory that no file holds", "anon", "MB", NONE)


def measure_turns(bench: Bench) -> Iterator[Row]:
    """Processor time of a turn of the agent; the floor is our client alone, the peer the quickest of three agents."""
    targets = dict.fromkeys(("sdk", "ours", "gateway"), sys.executable)
    targets |= {} if bench.is_short else turn.environments(cache() / "peers")
    found = turn.run(targets, 3 if bench.is_short else 30, bench.rounds)

    def cell(who: str, model: str) -> float:
        return float(statistics.median(time for part in found[who, model] for time in part["cpu"])) * 1000

    for model, words in turn.MODELS.items():
        peers = sorted((cell(who, model), who) for who in turn.PEERS if (who, model) in found)
        peer = f"{peers[0][0]:.1f} ms ({peers[0][1]})" if peers else NONE
        floor = f"{cell('ours', model):.1f} ms" if ("ours", model) in found else NONE
        yield Row(words, f"{cell('gateway', model):.1f} ms", peer=peer, floor=floor)


SECTIONS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "messages": measure_messages,
    "counts": count,
    "stages": list_stages,
    "start": measure_start,
    "turns": measure_turns,
}


def describe_machine(before: float) -> str:
    """How quiet the machine is, and whether byte code is there."""
    cores, after = os.cpu_count() or 1, os.getloadavg()[0]
    quiet = "quiet" if max(before, after) <= cores * QUIET_SHARE else "**not quiet**"
    compiled = all((path.parent / "__pycache__").is_dir() for path in (ROOT / "gateway").rglob("__init__.py"))
    code = "byte code is there" if compiled and not sys.dont_write_bytecode else "**no byte code**"
    version = "{}.{}.{}".format(*sys.version_info)
    loads = f"load {before:.1f} before and {after:.1f} after"
    return f"{time.strftime('%Y-%m-%d')}, Python {version}, {cores} processors, {quiet} ({loads}), {code}:"


def as_table(rows: Sequence[Row]) -> str:
    shown = [index for index in range(len(COLUMNS)) if index == 0 or any(row.cells[index] != NONE for row in rows)]
    lines = [[COLUMNS[index] for index in shown], ["---"] * len(shown)]
    lines += [[row.cells[index] for index in shown] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def write(name: str, text: str) -> None:
    """In the place of the table that the page has."""
    page = PAGE.read_text("utf-8")
    begin, end = f"<!-- bench: {name} -->\n", f"<!-- end: {name} -->\n"
    head, _, rest = page.partition(begin)
    _, found, tail = rest.partition(end)
    assert found, f"{PAGE} has no place for {name}"
    PAGE.write_text(f"{head}{begin}{text}\n{end}{tail}", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *SECTIONS], metavar="NAME", help=", ".join(SECTIONS))
    parser.add_argument("--short", action="store_true", help="each a little, without peers; nothing is written")
    options = parser.parse_args()
    bench = Bench(None if options.short else find_release(), options.short)
    for name in options.names or SECTIONS:
        before = os.getloadavg()[0]
        rows = list(SECTIONS[name](bench))
        text = f"{describe_machine(before)}\n\n{as_table(rows)}"
        print(f"## {name}\n\n{text}\n", flush=True)
        if not options.short:
            write(name, text)


if __name__ == "__main__":
    main()
