"""What a gateway costs that nobody uses, for minutes, and one that somebody has used for long.

`.venv/bin/python -m bench.idle [--seconds S] [--messages N]`. With 10 and with 1,000 hook folders nothing happens for
so long: wake-ups of all threads, processor time and bytes written are those of all processes. Then one person says so
many messages in a conversation, one after the other; memory is what no file holds, 2 s after the last answer, and its
second row how much more that is than after the first ten messages.
"""

import argparse
import time
from collections.abc import Iterator

from bench.options import parse_options
from bench.processes import descendants, memory, processor_seconds
from bench.trips import look
from bench.whole import ROOT, TreeGateway, run_gateway
from bench.workers import Row

COUNTS = (10, 1000)
FIRST = 10  # messages, after which memory is looked at for the first time
QUIET = 2.0
HOOK = {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(event_type, context):\n    pass\n"}


def family_of(gateway: TreeGateway) -> list[int]:
    return [gateway.pid, *descendants(gateway.pid)]


def measure_idle(count: int, seconds: float) -> Iterator[Row]:
    hooks = {f"hook-{number:04}": HOOK for number in range(count)}
    with run_gateway(ROOT, "-m", "gateway.cli", hooks=hooks) as gateway:
        time.sleep(QUIET + count / 100)
        family = family_of(gateway)
        before, used = look(family), processor_seconds(family)
        time.sleep(seconds)
        woken, _read, written = (after - early for after, early in zip(look(family), before, strict=True))
        share = (processor_seconds(family) - used) / seconds * 100
        anon = memory(family).anon
    yield Row(f"{count} folders: wake-ups a second", woken / seconds, "", 15)
    yield Row(f"{count} folders: of one processor", share, "%", 0.15)
    yield Row(f"{count} folders: bytes written", written, "", 0)
    yield Row(f"{count} folders: memory", anon, "MB")


def measure_messages(count: int) -> Iterator[Row]:
    with run_gateway(ROOT, "-m", "gateway.cli") as gateway:
        gateway.talk(1, FIRST, QUIET)
        early, before = memory(family_of(gateway)).anon, look(family_of(gateway))[2]
        gateway.talk(1, count, QUIET)
        late, written = memory(family_of(gateway)).anon, look(family_of(gateway))[2] - before
    yield Row(f"{count} messages of one person: written, each", written / count / 1e3, "kB", 70)
    yield Row(f"{count} messages of one person: memory at the end", late, "MB")
    yield Row(f"{count} messages of one person: more than after {FIRST}", late - early, "MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, metavar="S", help="how long nothing happens")
    parser.add_argument("--messages", type=int, default=700, metavar="N", help="how many one person says")
    options = parse_options(parser, seconds=3.0, messages=30)
    for count in COUNTS:
        for row in measure_idle(count, options.seconds):
            print(row.shown(), flush=True)
    for row in measure_messages(options.messages):
        print(row.shown(), flush=True)


if __name__ == "__main__":
    main()
