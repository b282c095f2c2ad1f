"""How large the journal of a small family is after a year, with an audit for all events.

`.venv/bin/python -m bench.year [--days N] [--folder DIR]`. Four people say a hundred messages a day, of which the model
answers one in ten with a tool; a conversation has two hundred of them. A durable hook for `*` is told of everything.
The gateway is the real one, with the model `script`; all its clocks are set ahead by six hours after each quarter of a
day, so it removes after days what it keeps for days. The longest limit that counts here is fourteen days: from the
sixteenth on the journal grows by what stays. So the last row is the size at the end and, for the days that are missing
to a year, what each day since the sixteenth has added.
"""

import argparse
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from bench.options import parse_options
from bench.owed_events import HANDLER, LOOK_SECONDS, wait_until_told
from gateway.control.client import ControlClient
from tests.chaos.moved_gateway import MovedGateway

PEOPLE, A_DAY, QUARTERS = 4, 100, 4
LENGTH = 200  # messages of a conversation
SETTLED, WHOLE, YEAR = 16, 24, 365  # days
SHOWN = 2  # a row for so many days
DAY = 86400.0
GOAL = 300.0  # megabytes
PATIENCE = 120.0
PRAGMAS = ("page_count", "freelist_count", "page_size")
QUESTION = "Could you have a look at when the train to my sister leaves on Friday, and remind me?"
ANSWER = "It leaves at 9:12 from platform 4, and you arrive at 11:40 after one change. " * 4
SETTINGS = "web: {enabled: false}\n"
MANIFEST = "events: ['*']\ndelivery: durable\n"
SUM = {"tool_calls": [{"name": "calculate", "args": {"expression": "12 * 7"}}]}
TURNS = ({"user": "sum", "answers": [SUM, {"text": ANSWER}]}, {"user": "Could", "text": ANSWER})
KINDS = {"turn": "conversations", "owed": "events", "ev": "events"}  # by the second word of a subject
COLUMNS = ("conversations", "events", "others")


def list_texts(first: int, count: int) -> list[tuple[int, str]]:
    """Return each turn's author and text: the first message of ten is a sum."""
    return [(number % PEOPLE, "sum" if number % 10 == 0 else QUESTION) for number in range(first, first + count)]


def talk(gateway: MovedGateway, first: int, count: int) -> None:
    with ControlClient(gateway.home.socket, PATIENCE) as client:
        for person, text in list_texts(first, count):
            said = first // PEOPLE + person * LENGTH // PEOPLE  # not all of them begin anew on the same day
            client.call("chat.say", {"text": text, "session": f"p{person}x{said // LENGTH}"})


def measure(journal: Path) -> Counter[str]:
    """Megabytes of each kind of records, and of the whole file."""
    found = Counter[str]()
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as db:
        for subject, size in db.execute("SELECT subject, length(data) FROM log"):
            found[KINDS.get(subject.split(".")[1], "others")] += size
        pages, free, page = (db.execute(f"PRAGMA {what}").fetchone()[0] for what in PRAGMAS)
    found["all"] = (pages - free) * page
    return Counter({kind: size / 1e6 for kind, size in found.items()})


def wait_until_removed(gateway: MovedGateway) -> None:
    """Until it grows no smaller: what is over its time goes bit by bit."""
    before, size = 0, -1
    while size != before:
        time.sleep(LOOK_SECONDS)
        before, size = size, gateway.call("status")["journal"]["size"]


def live(gateway: MovedGateway, days: int) -> Iterator[Counter[str]]:
    """How large it is after each day."""
    for day in range(days):
        for quarter in range(QUARTERS):
            talk(gateway, (day * QUARTERS + quarter) * A_DAY // QUARTERS, A_DAY // QUARTERS)
            wait_until_told(gateway)
            gateway.pass_time(DAY / QUARTERS)
        wait_until_removed(gateway)
        yield measure(gateway.home.journal)


def without_events(size: Counter[str]) -> float:
    """Return the size without events: the journal keeps those for about a week."""
    return size["all"] - size["events"]


def describe_year(sizes: Sequence[Counter[str]]) -> str:
    """The size at the end, and what is missing to a year at what a day has added since all limits count."""
    if len(sizes) < WHOLE:
        return f"year: says more from {WHOLE} days on"
    grown = without_events(sizes[-1]) - without_events(sizes[SETTLED - 1])
    a_day = grown / (len(sizes) - SETTLED)
    year = sizes[-1]["all"] + max(0.0, a_day) * (YEAR - len(sizes))
    return (
        f"{'year':>4}{year:>10.1f}  {'met' if year <= GOAL else 'MISSED'} (at most {GOAL:g} MB; {a_day:.2f} MB a day)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=WHOLE)
    parser.add_argument("--folder", type=Path, metavar="DIR", help="a folder on the disk to use")
    options = parse_options(parser, days=2)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, MovedGateway(Path(folder) / "home") as gateway:
        gateway.add_hook("audit", {"HOOK.yaml": MANIFEST, "handler.py": HANDLER})
        gateway.script(*TURNS, {"user": "hello", "text": "hello"}, settings=SETTINGS)
        gateway.start("--log-level", "error")
        sizes = []
        print(f"{'days':>4}{'MB':>10}" + "".join(f"{kind:>15}" for kind in COLUMNS))
        for size in live(gateway, options.days):
            sizes.append(size)
            if len(sizes) % SHOWN == 0 or len(sizes) == options.days:
                parts = "".join(f"{size[kind]:>15.1f}" for kind in COLUMNS)
                print(f"{len(sizes):>4}{size['all']:>10.1f}{parts}", flush=True)
        print(describe_year(sizes))


if __name__ == "__main__":
    main()
