"""`./x pictures`: takes the pictures of the documentation from a gateway that really runs, into `docs/pictures`.

The terminal is drawn (SVG) from what the program writes there; the page in a browser is taken by the Chromium that the
tests use. Diagrams and recordings whose text has changed are drawn again (`tests/diagrams.py` and
`tests/recordings.py`, which do that alone).
"""

import argparse
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from anyio.from_thread import start_blocking_portal
from msgspec.structs import replace
from PIL import Image
from playwright.sync_api import FloatRect, expect

from gateway.engine.interface import NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.figures.half_hours import HALF_HOUR, HalfHours
from gateway.messages.transcript import Usage
from gateway.records import records, subjects
from gateway.records.figures import HalfHour, WorkTotal
from gateway.testing import GatewayProcess
from tests import diagrams, recordings
from tests.adapters.telegram_wire import TelegramWire, user
from tests.browser.jobs_of_a_day import write_jobs
from tests.browser.screen import PATIENCE, find_chromium, log_in, open_chromium, screens
from tests.docs_blocks import Shell, read_hook
from tests.proof_table import ROOT
from tests.spine import SetClock
from tests.terminal_picture import as_svg

FOLDER = ROOT / "docs" / "pictures"
SIZE = {"width": 1200, "height": 900}
SHOWN: dict[str, FloatRect] = {  # what is below is empty
    "overview": {"x": 0, "y": 0, "width": 1200, "height": 900},
    "hooks": {"x": 0, "y": 0, "width": 1200, "height": 520},
}
COLOURS = 256  # of a picture of the page: it has few
QUESTION = './x chat -m "what is 12 * (3 + 4)"'
HOOK = "ask-first"
PLACED = (f"cat {HOOK}/handler.py", f"mkdir -p ~/.hermes/hooks && cp -r {HOOK} ~/.hermes/hooks  # it is live")
REFUSAL = "./x chat -m no"
PEOPLE = {
    "6048": ("Mara", "Lindqvist"),
    "7312": ("Kofi", "Mensah"),
    "8001": ("Ines", "Duarte"),
    "8777": ("Tom", "Berg"),
    "9120": ("Jonas", "Weber"),
}
MARA, KOFI, INES, TOM, JONAS = PEOPLE
UPLOAD = "rsync -a --delete ~/site/public/ web1:/srv/www/"
TURNS: tuple[dict[str, Any], ...] = (
    {"user": "front page", "answers": [{"tool_calls": [{"name": "shell", "args": {"command": UPLOAD}}]}]},
    {"user": "lamp", "text": "It follows the motion sensor, which saw the cat at three."},
    {"user": "train", "text": "The 8:12 from platform 4 is on time."},
    *[{"user": "", "text": "Done."}] * 9,
)
TALK = (
    (KOFI, "Why does the hall lamp come on at three?"),
    (INES, "When does the next train leave?"),
    (TOM, "Remind me of the dentist at three"),
    (MARA, "Upload the new front page, the old one may go"),
)
SETTINGS = f"""
budgets: {{all: {{day: {{money: 5}}}}}}
tools: {{shell: ask}}
access: {{owners: {{telegram: ['{MARA}']}}, users: {{telegram: ['{KOFI}', '{INES}', '{TOM}']}}}}
"""
SAMPLES = ("activity-log", "prompt-guardrail", "tool-approval", "long-task-alert")


def take_terminal(place: Path) -> str:
    """Take the picture at the top of README.md: an answer, a hook, and its change."""
    waiting = place / "desk" / HOOK
    shell = Shell(place, FORCE_COLOR="1", COLUMNS="80")
    try:
        waiting.mkdir()
        for name, text in read_hook(ROOT / "README.md", HOOK).items():
            (waiting / name).write_text(text)
        shell.run("./x run &", "stop")
        said = [("./x run &", until_box_ends(shell.read_behind()))]
        said += [(command, shell.run(command, "")[0]) for command in (QUESTION, *PLACED)]
        shell.run("sleep 1", "")
        return as_svg([*said, *((command, shell.run(command, "")[0]) for command in (QUESTION, REFUSAL))])
    finally:
        shell.close()


def until_box_ends(said: str) -> str:
    """The banner, without the lines of the log around it."""
    return "\n".join(line for line in said.splitlines() if line[:1] in {"╭", "│", "╰"})


def write(wire: TelegramWire, person: str, text: str) -> None:
    first, last = PEOPLE[person]
    wire.told(
        wire.message(person, person, text=text, **{"from": {**user(person), "first_name": first, "last_name": last}})
    )


@contextmanager
def spend_day(place: Path) -> Iterator[tuple[GatewayProcess, Callable[[str, str], None]]]:
    """Run a gateway that has two days behind it, and whose people have just written; return how they write more."""
    wire = TelegramWire()
    with (
        GatewayProcess(place) as gateway,
        start_blocking_portal() as portal,  # a browser's loop may run in this thread
        portal.wrap_async_context_manager(wire.serving()),
    ):
        gateway.environ |= wire.environ
        gateway.script(*TURNS, settings=SETTINGS)
        for name in SAMPLES:
            gateway.add_hook(name, ROOT / "sample_hooks" / name)
        portal.call(write_days, gateway)
        gateway.start()
        say = partial(portal.call, write, wire)
        for person, text in TALK:
            say(person, text)
        say(JONAS, "Hello, may I use this bot?")
        gateway.until(lambda: bool(gateway.call("pairing.list")["asking"]))
        gateway.until(lambda: len(gateway.call("sessions.list")["sessions"]) == len(TALK))
        gateway.until(lambda: bool(gateway.call("approvals.list")["approvals"]))
        yield gateway, say


async def write_days(gateway: GatewayProcess) -> None:
    """Leave two days with people in them, in a gateway that ran before: quiet at night, and busy in the afternoon."""
    chance, now, total = random.Random(7), time.time(), HalfHour(times=(0,) * 17)
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    moments = [now - at * HALF_HOUR for at in range(95, 0, -1)]
    clock, spent = SetClock(moments[0]), 0.0
    async with await open_sqlite(gateway.home.journal) as engine:
        await write_jobs(engine, now)
        half_hours = HalfHours(engine, "another", lambda: total, clock)
        for moment in moments:
            hour = datetime.fromtimestamp(moment, UTC).hour
            turns = round(max(0.0, math.sin((hour - 6) / 18 * math.pi)) * chance.randint(6, 14))
            total = add_work(total, turns, chance)
            spent += 0.011 * turns if moment >= midnight else 0
            clock.now = moment + HALF_HOUR
            await half_hours.write()
        used = Usage(1_000_000, 200_000, calls=300, cost=round(spent, 2), model="gpt-5-mini")
        row = records.UsageRow(person=f"telegram:{MARA}", usage=used)
        day = records.DayUsage(day=datetime.now().astimezone().date().isoformat(), rows=(row,))
        await engine.append(NewRecord(subjects.day_subject_of(day.day), records.encode(day)))


def add_work(total: HalfHour, turns: int, chance: random.Random) -> HalfHour:
    """Add some turns to the sums, with their times and the calls of hooks."""
    failed = turns > 8 and chance.random() < 0.3
    times = list(total.times)
    for _ in range(turns):
        times[chance.choice((10, 10, 11, 11, 12, 13))] += 1
    hooks = {name: (before[0] + 2 * turns, before[1]) for name in SAMPLES for before in [total.hooks.get(name, (0, 0))]}
    work = WorkTotal(turns, int(failed), 4000 * turns, 0.011 * turns)
    messages = {"telegram": total.messages.get("telegram", 0) + turns}
    return replace(total, work=total.work + work, times=tuple(times), messages=messages, hooks=hooks)


def take_rooms(place: Path, folder: Path) -> None:
    """The page: what the owner sees first, and the hooks."""
    program = find_chromium()
    if program is None:
        raise SystemExit("the page is taken in a real browser: apt install chromium")
    with spend_day(place) as (gateway, say), open_chromium(program) as browser:
        url, login = log_in(browser, gateway)
        for room, shows in (("overview", "prompt-guardrail"), ("hooks", "prompt-guardrail")):
            with screens(browser, url, login, viewport=SIZE) as screen:
                screen.enter(room, shows)
                if room == "overview":
                    say(KOFI, "Thank you!")
                    expect(screen.room.locator(".events")).to_contain_text("got an answer", timeout=PATIENCE)
                path = folder / f"{room}.png"
                screen.page.screenshot(path=path, clip=SHOWN[room])
                taken = Image.open(path).convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1)
                taken.save(path, optimize=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./x pictures", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="where they go (default: docs/pictures)")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    diagrams.main()
    recordings.main()
    with tempfile.TemporaryDirectory(prefix="pictures-") as place:
        (folder / "terminal.svg").write_text(take_terminal(Path(place)), "utf-8")
    with tempfile.TemporaryDirectory(prefix="pictures-") as place:
        take_rooms(Path(place) / "home", folder)
    for path in sorted(folder.iterdir()):
        print(f"{path.name:<14} {path.stat().st_size / 1024:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
