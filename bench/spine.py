"""Messages a second through the whole daemon, and how long one takes from in to out: goal P4.

`.venv/bin/python -m bench.spine [--seconds S] [--folder DIR]`. People at the control socket, each in a session of their
own, say one thing after the other; each goes through journal, lane, hooks, agent, journal and outbox of a real gateway
in its own process. The model is a script that answers at once, so that what is measured is the gateway. First messages
of a session are not among these; how long they take where 100 sessions begin at once stands below, beside a later one.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from bench.options import parse_options
from gateway.testing import GatewayProcess

PEOPLE = (1, 16, 100)
GOAL_PEOPLE, GOAL_RATE, GOAL_SPREAD = 16, 600, 5.0
WARM_SECONDS = 0.5
NEW, NEW_ROUNDS, GOAL_NEW = 100, 3, 2.0
SETTINGS = "sessions: {turns: 200, turns_per_person: 200}\n"


async def talk(socket: Path, session: str, until: float, taken: list[float]) -> None:
    reader, writer = await asyncio.open_unix_connection(str(socket), limit=1 << 20)
    said = {"id": 1, "method": "chat.say", "params": {"text": "hello", "session": session}}
    line = json.dumps(said).encode() + b"\n"
    while True:
        began = time.perf_counter()
        writer.write(line)
        while b'"result"' not in (answer := await reader.readline()):
            if not answer or b'"error"' in answer:
                raise RuntimeError(f"the gateway did not answer: {answer!r}")
        taken.append(time.perf_counter() - began)
        if time.perf_counter() >= until:
            break
    writer.close()
    await writer.wait_closed()


async def measure_new(socket: Path, name: str) -> tuple[float, float]:
    """Return the medians of the first and of the second message of sessions that begin at once."""
    taken: list[list[float]] = [[], []]
    for some in taken:
        async with asyncio.TaskGroup() as talks:
            for number in range(NEW):
                talks.create_task(talk(socket, f"{name}x{number}", 0.0, some))
    first, later = map(statistics.median, taken)
    return first, later


async def measure(socket: Path, people: int, seconds: float) -> list[float]:
    taken: list[float] = []
    until = time.perf_counter() + seconds
    async with asyncio.TaskGroup() as talks:
        for number in range(people):
            talks.create_task(talk(socket, f"p{people}x{number}", until, taken))
    return sorted(taken)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of the gateway's process: a busy machine changes the rates, but not this."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def line(people: int, taken: list[float], seconds: float, cpu: float) -> str:
    p50, p99 = taken[len(taken) // 2], taken[int(len(taken) * 0.99)]
    text = f"{people:>7}{len(taken) / seconds:>12,.0f}{p50 * 1e3:>9.2f}{p99 * 1e3:>9.2f}{cpu / len(taken) * 1e3:>9.2f}"
    if people != GOAL_PEOPLE:
        return text
    is_met = len(taken) / seconds >= GOAL_RATE and p99 <= GOAL_SPREAD * p50
    goal = f"at least {GOAL_RATE} a second, p99 at most {GOAL_SPREAD:g} x p50"
    return f"{text}  {'met' if is_met else 'MISSED'} ({goal})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="how long each measurement lasts")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="a folder on the disk to measure")
    options = parse_options(parser, seconds=0.5)
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as folder,
        GatewayProcess(Path(folder) / "home", forks=False) as gateway,
    ):
        gateway.script({"user": "hello", "answers": [{"text": "hello yourself"}]}, settings=SETTINGS)
        gateway.start("--log-level", "error")
        assert gateway.process
        print(f"{'people':>7}{'messages/s':>12}{'p50 ms':>9}{'p99 ms':>9}{'CPU ms':>9}")
        for people in PEOPLE:
            asyncio.run(measure(gateway.home.socket, people, WARM_SECONDS))
            before = cpu_seconds(gateway.process.pid)
            taken = asyncio.run(measure(gateway.home.socket, people, options.seconds))
            print(line(people, taken, options.seconds, cpu_seconds(gateway.process.pid) - before))
        found = [asyncio.run(measure_new(gateway.home.socket, f"new{number}")) for number in range(NEW_ROUNDS)]
        first, later = map(statistics.median, zip(*found, strict=True))
        print(f"{NEW} new sessions at once: {first * 1e3:.0f} ms, a later message {later * 1e3:.0f} ms:", end=" ")
        print(f"{first / later:.2f} x, {'met' if first <= GOAL_NEW * later else 'MISSED'} (at most {GOAL_NEW:g} x)")


if __name__ == "__main__":
    main()
