"""Measure a turn without a durable hook, with one for its end, and with one for all events, in turn in one run.

`.venv/bin/python -m bench.owed_events [--seconds S] [--rounds N] [--pace TURNS]`. The same people as in `bench.spine`,
as fast as the gateway answers them, or so many turns a second. What counts is the processor time of all processes for a
turn, from the first message until the hooks have been told of everything: `times` is that beside no hook in the same
round. `late` is the most seconds that the hook was behind meanwhile, looked at once a second. `behind` are the events
that were not told when the people stopped, `after` the seconds until they were; `event` is the processor time of each
of them in that while. A machine that does other things too changes from minute to minute, so each round has all three.
"""

import argparse
import asyncio
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from bench.options import parse_options
from bench.spine import SETTINGS, talk
from gateway.testing import GatewayProcess

PEOPLE = 8
WANTED = ("", "agent:end", "*")  # what the hook wants; without any there is no durable hook
HANDLER = "def handle(event_type, context):\n    pass\n"
GOAL_PACE, GOAL_TIMES = 20.0, 1.4
LOOK_SECONDS = 0.25
ONE_TURN = 0.001  # seconds in which a turn begins, and no second one


class Measured(NamedTuple):
    turns: int
    seconds: float
    cpu: float
    late: float
    behind: int
    after: float
    cpu_after: float


def tree_cpu_seconds(root: int) -> float:
    """Return the processor time of a process and its descendants, also of those that have ended."""
    used, parents = dict[int, float](), dict[int, int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            fields = path.read_text().rpartition(")")[2].split()
            used[int(path.parent.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            parents[int(path.parent.name)] = int(fields[1])
    found, below = set[int](), {root}
    while below:
        found |= below
        below = {pid for pid, parent in parents.items() if parent in below}
    return sum(used.get(pid, 0.0) for pid in found)


async def talk_at_pace(socket: Path, session: str, until: float, each: float, taken: list[float]) -> None:
    """Say something every so many seconds; who was answered later than that says the next one at once."""
    due = time.perf_counter()
    while due < until:
        await asyncio.sleep(due - time.perf_counter())
        await talk(socket, session, time.perf_counter() + ONE_TURN, taken)
        due += each


async def measure(socket: Path, seconds: float, pace: float) -> int:
    """How many turns there were."""
    taken: list[float] = []
    until = time.perf_counter() + seconds
    async with asyncio.TaskGroup() as talks:
        for number in range(PEOPLE):
            session = f"p{number}"
            if pace:
                talks.create_task(talk_at_pace(socket, session, until, PEOPLE / pace, taken))
            else:
                talks.create_task(talk(socket, session, until, taken))
    return len(taken)


def run_once(wanted: str, seconds: float, pace: float) -> Measured:
    with tempfile.TemporaryDirectory() as folder, GatewayProcess(Path(folder) / "home", forks=False) as gateway:
        if wanted:
            manifest = f"events: {json.dumps([wanted])}\ndelivery: durable\n"
            gateway.add_hook("keeps", {"HOOK.yaml": manifest, "handler.py": HANDLER})
        gateway.script({"user": "hello", "text": "I hear you."}, settings=SETTINGS)
        gateway.start()
        assert gateway.process
        gateway.say("hello", session="first")
        wait_until_told(gateway)
        begun, before = time.perf_counter(), tree_cpu_seconds(gateway.process.pid)
        with watching(gateway) as late:
            turns = asyncio.run(measure(gateway.home.socket, seconds, pace))
        ended, then = time.perf_counter(), tree_cpu_seconds(gateway.process.pid)
        behind = count_owed(gateway)
        wait_until_told(gateway)
        told, used = time.perf_counter(), tree_cpu_seconds(gateway.process.pid)
        return Measured(turns, ended - begun, used - before, max(late, default=0.0), behind, told - ended, used - then)


@contextmanager
def watching(gateway: GatewayProcess) -> Iterator[list[float]]:
    """Note once a second by how many seconds a hook is behind."""
    found, is_over = list[float](), threading.Event()

    def look() -> None:
        while not is_over.wait(1.0):
            found.extend(hook["behind"] for hook in gateway.call("hooks.list")["hooks"])

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield found
    finally:
        is_over.set()
        looking.join()


def count_owed(gateway: GatewayProcess) -> int:
    return sum(hook["owed"] for hook in gateway.call("hooks.list")["hooks"])


def wait_until_told(gateway: GatewayProcess) -> None:
    while count_owed(gateway):
        time.sleep(LOOK_SECONDS)


def line(wanted: str, found: Measured, without: float, pace: float) -> str:
    each = found.cpu / found.turns
    text = f"{wanted or 'none':>12}{found.turns / found.seconds:>9.1f}{each * 1e3:>9.2f}{each / without:>7.2f}"
    text += f"{found.late:>8.1f}{found.behind:>8}{found.after:>8.1f}"
    if found.behind >= 100:
        text += f"{found.cpu_after / found.behind * 1e3:>9.2f}"
    if wanted != "*" or pace != GOAL_PACE:
        return text
    return f"{text}  {'met' if each <= GOAL_TIMES * without else 'MISSED'} (at most {GOAL_TIMES:g} times)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pace", type=float, default=0.0, metavar="TURNS", help="a second; 0: as many as it makes")
    options = parse_options(parser, seconds=1.0, rounds=1)
    print(f"{'durable hook':>12}{'turns/s':>9}{'cpu ms':>9}{'times':>7}", end="")
    print(f"{'late s':>8}{'behind':>8}{'after s':>8}{'event ms':>9}")
    for _ in range(options.rounds):
        without = 0.0
        for wanted in WANTED:
            found = run_once(wanted, options.seconds, options.pace)
            without = without or found.cpu / found.turns
            print(line(wanted, found, without, options.pace), flush=True)


if __name__ == "__main__":
    main()
