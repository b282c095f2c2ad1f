"""The gateway as a whole, one row a tree: what a message costs, memory, start, how much code there is, and its tests.

`.venv/bin/python -m bench.whole [TREE...] [--rounds N] [--turns N] [--quiet S]`. Each tree is a checkout, also an older
one, with its own `.venv` (`./x check floors` makes it); without any it is this one. They are measured in turn.

The model answers at once. A message has cost what all processes did until two seconds after the last answer, in
sessions of at most 60 turns: `ms x16` are milliseconds of processor where 16 people talk at once. Calls are those on
the loop's thread, those of C among them, for 16 people; appends are those of a message alone. Memory is what no file
holds (`Pss_Anon`), of all processes, idle; a start is from exec to ready. Tests are functions, and how long they take
is what the last `./x test` of that tree left: minutes of processor, and by the clock.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import start
from bench.code_lines import count_code
from bench.options import parse_options
from bench.processes import Life, descendants, processor_seconds
from bench.spine import SETTINGS
from gateway.testing import GatewayProcess

ROOT = Path(__file__).parent.parent
COUNTED = ROOT / "bench" / "peers" / "counted_gateway.py"
MANY = 16
SHARES = {1: 1.0, MANY: 2 / 3, 100: 1 / 4}  # people at a time, and how many of the turns each of them has
WARM_TURNS = 3
FREE_PORT = "web: {listen: 127.0.0.1:0}\n"
REPORT_SIGNAL = signal.SIGRTMIN + 9
LAST_TEST = ".pytest_cache/v/gateway/last_run"
TEST = re.compile(r"^ *(?:async )?def test_", re.MULTILINE)
HEADS = ("calls", *(f"ms x{people}" for people in SHARES), "appends", "MB", "start s")
MORE_HEADS = ("lines", "files", "tests", "test CPU", "by clock")


class TreeGateway(GatewayProcess):
    """A gateway of another tree."""

    def __init__(self, root: Path, tree: Path, program: Sequence[str]) -> None:
        super().__init__(root)
        self._tree = tree
        self._program = program
        self.environ |= {"PYTHONHASHSEED": "0"}

    def spawn(self, *args: str, environ: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        command = [str(python_of(self._tree)), *self._program, *args]
        given, pipe = {**self.environ, **(environ or {})}, subprocess.PIPE
        return subprocess.Popen(command, cwd=self._tree, env=given, stdout=pipe, stderr=pipe, text=True)

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    def talk(self, people: int, turns: int, quiet: float) -> int:
        """All of them at once, each in a session of their own, until nothing follows; how many messages it were."""
        asyncio.run(talk(self.home.socket, people, turns))
        time.sleep(quiet)
        return people * turns


async def talk(socket: Path, people: int, turns: int) -> None:
    async with asyncio.TaskGroup() as talks:
        for number in range(people):
            talks.create_task(say(socket, f"{time.monotonic_ns()}-{number}", turns))


async def say(socket: Path, session: str, turns: int) -> None:
    reader, writer = await asyncio.open_unix_connection(str(socket), limit=1 << 20)
    said = {"id": 1, "method": "chat.say", "params": {"text": "hello", "session": session}}
    for _ in range(turns):
        writer.write(json.dumps(said).encode() + b"\n")
        while b'"result"' not in (answer := await reader.readline()):
            if not answer or b'"error"' in answer:
                raise RuntimeError(f"the gateway did not answer: {answer!r}")
    writer.close()
    await writer.wait_closed()


@dataclass
class Costs:
    """A message in one tree, with a value a round; processor time in milliseconds, by how many people talk at once."""

    processor: dict[int, list[float]] = field(default_factory=lambda: {people: [] for people in SHARES})
    calls: list[float] = field(default_factory=list)
    appends: list[float] = field(default_factory=list)


@contextmanager
def run_gateway(
    tree: Path,
    *program: str,
    settings: str = "",
    model: str = "",
    environ: Mapping[str, str] | None = None,
    hooks: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[TreeGateway]:
    """With these hooks, and a model that answers at once, or the `model` of this configuration."""
    with tempfile.TemporaryDirectory() as folder, TreeGateway(Path(folder) / "home", tree, program) as gateway:
        if model:
            gateway.configure(model)
        else:
            gateway.script({"user": "hello", "answers": [{"text": "hello yourself"}]}, settings=SETTINGS + settings)
        for name, files in (hooks or {}).items():
            gateway.add_hook(name, files)
        gateway.start("--log-level", "error", environ=environ)
        yield gateway


def measure_processor(tree: Path, costs: Costs, turns: int, quiet: float) -> None:
    with run_gateway(tree, "-m", "gateway.cli") as gateway:
        for people, share in SHARES.items():
            gateway.talk(people, WARM_TURNS, quiet)
            before = processor_seconds([gateway.pid, *descendants(gateway.pid)])
            messages = gateway.talk(people, int(turns * share), quiet)
            used = processor_seconds([gateway.pid, *descendants(gateway.pid)]) - before
            costs.processor[people].append(used / messages * 1e3)


def count(tree: Path, costs: Costs, turns: int, quiet: float) -> None:
    """In a gateway of its own, as what is counted is slower for it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        with run_gateway(tree, str(COUNTED), str(report)) as gateway:
            for people in (1, MANY):
                gateway.talk(people, WARM_TURNS, quiet)
                read_report(gateway, report)
                messages = gateway.talk(people, int(turns * SHARES[people]), quiet)
                found = read_report(gateway, report)
                if people == MANY:
                    costs.calls.append(found["calls"] / messages)
                else:
                    costs.appends.append(found["appends"] / messages)


def read_report(gateway: TreeGateway, report: Path) -> dict[str, Any]:
    """Return the counts since the last report."""
    os.kill(gateway.pid, REPORT_SIGNAL)
    gateway.until(report.exists)
    found: dict[str, Any] = json.loads(report.read_text())
    report.unlink()
    return found


def measure_lives(trees: Sequence[Path], rounds: int) -> list[list[Life]]:
    """Measure the start of each tree, without the first one, which made the home warm."""
    programs = [str(tree / ".venv" / "bin" / "hermes-gateway") for tree in trees]
    sides = [
        start.Side(str(number), [program, "run"], FREE_PORT, start.our_ready) for number, program in enumerate(programs)
    ]
    return [lives for _counted, *lives in start.measure(sides, 0, rounds).values()]


def describe_costs(costs: Costs, lives: Sequence[Life]) -> list[str]:
    """The cells under HEADS."""
    processor = (f"{statistics.median(values):.2f}" for values in costs.processor.values())
    appends = f"{statistics.median(costs.appends):.1f}"
    memory, ready = start.median(lives, "anon"), start.median(lives, "ready")
    return [f"{statistics.median(costs.calls):,.0f}", *processor, appends, f"{memory:.1f}", f"{ready:.3f}"]


def describe_code(tree: Path) -> list[str]:
    """The cells under MORE_HEADS."""
    sources = [path.read_text("utf-8") for path in (tree / "gateway").rglob("*.py")]
    code = sum(map(count_code, sources), Counter[str]())
    tests = sum(len(TEST.findall(path.read_text("utf-8"))) for path in (tree / "tests").rglob("test_*.py"))
    last = tree / LAST_TEST
    taken = json.loads(last.read_text()) if last.exists() else {}
    minutes = (f"{taken[which] / 60:.1f}" if which in taken else "-" for which in ("processor", "wall"))
    return [f"{code['lines']:,}", f"{code['files']:,}", f"{tests:,}", *minutes]


def name_of(tree: Path) -> str:
    """Its folder and its commit."""
    command = ["git", "-C", str(tree), "describe", "--always", "--dirty=+", "--exclude=*"]
    return f"{tree.name} {subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()}"


def python_of(tree: Path) -> Path:
    """Return the Python of an environment; end the run without one."""
    python = tree / ".venv" / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"{tree} has no environment of its own: cd {tree} && ./x check floors")
    return python


def show(name: str, cells: Sequence[str], more: Sequence[str]) -> None:
    print(f"{name:24}{cells[0]:>8}" + "".join(f"{cell:>9}" for cell in (*cells[1:], *more)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path, nargs="*", metavar="TREE", default=[ROOT])
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--turns", type=int, default=60, metavar="N", help="of one person; fewer of each of many")
    parser.add_argument("--quiet", type=float, default=2.0, metavar="S", help="seconds after the last answer")
    options = parse_options(parser, rounds=1, turns=8, quiet=0.5)
    trees = [tree.resolve() for tree in options.trees]
    for tree in trees:
        python_of(tree)
    before = os.getloadavg()[0]
    costs = {tree: Costs() for tree in trees}
    for number in range(options.rounds):
        for tree in trees[:: 1 if number % 2 else -1]:
            measure_processor(tree, costs[tree], options.turns, options.quiet)
    for tree in trees:
        count(tree, costs[tree], options.turns, options.quiet)
    lives = measure_lives(trees, options.rounds)
    show("", HEADS, MORE_HEADS)
    for tree, some in zip(trees, lives, strict=True):
        show(name_of(tree), describe_costs(costs[tree], some), describe_code(tree))
    print(f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
