"""The last state of a folder is live, however often it changes; a hook that changes itself is held back."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from gateway.hooks.folders.own_changes import MOST_SOON_AFTER, MOST_WHILE_LOADED, SOON
from tests.hooks.folders.workshop import Yard
from tests.spine import until

pytestmark = pytest.mark.process

MANIFEST = "intercepts: ['my:*']\n"
ANSWERS = "import time\ntime.sleep({import_time})\ndef handle(event_type, context): return {{'n': {n}}}\n"
WRITES = """
import threading, time
from pathlib import Path

def write(made="made.py"):
    Path(__file__).with_name(made).write_text(f"AT = {time.time()!r}")

def handle(event_type, context): return {"n": -1}

with Path(__file__).with_name("loads").open("a") as file:
    file.write("x")
"""
WHILE_LOADED = "write()\n"
SLOW = "write()\ntime.sleep(0.5)\n"
SOON_AFTER = "threading.Timer(0.1, write).start()\n"
FAILS = "write()\nraise ValueError('no')\n"


async def answer(yard: Yard) -> int:
    return int((await yard.registry.run("my:event", n=0))["n"])


async def is_live(yard: Yard, n: int) -> bool:
    return await answer(yard) == n


def save(folder: Path, source: str) -> None:
    """As editors do, so that nobody reads a half of it."""
    beside = folder.with_name(".beside")
    beside.write_text(source)
    beside.replace(folder / "handler.py")


def is_said(yard: Yard, reason: str) -> bool:
    return reason in yard.hook("scribe").process.reason


def count_loads(folder: Path) -> int:
    return len((folder / "loads").read_text())


@pytest.fixture
def failures(yard: Yard) -> list[str]:
    """Why something was not taken."""
    told: list[str] = []
    yard.registry.watch("hook:failed", lambda _name, event: told.append(event["reason"]))
    return told


async def test_each_of_many_changes_is_live_however_soon_it_comes(yard: Yard, failures: list[str]) -> None:
    folder = yard.plant("saved", MANIFEST, ANSWERS.format(import_time=0, n=0))
    for n in range(3 * MOST_WHILE_LOADED):
        await anyio.sleep(0.02)  # the clock of files goes by steps: it is not to tell of the loading before
        save(folder, ANSWERS.format(import_time=0, n=n))
        await until(partial(is_live, yard, n))
    assert failures == []


@pytest.mark.parametrize(
    ("import_time", "pause", "last"), [(0, 0.1, 2 * MOST_SOON_AFTER), (0.4, 0.15, 12), (1, 0.7, 8)]
)
async def test_the_last_of_many_changes_that_look_like_its_own_is_live_soon(
    yard: Yard, failures: list[str], import_time: float, pause: float, last: int
) -> None:
    """They come while it is loaded, or right after."""
    folder = yard.plant("saved", MANIFEST, ANSWERS.format(import_time=import_time, n=0))
    for n in range(1, last + 1):
        await anyio.sleep(pause)
        save(folder, ANSWERS.format(import_time=import_time, n=n))
    await until(partial(is_live, yard, last))
    assert [reason for reason in failures if not reason.endswith("it is looked at again in 1 s")] == []


@pytest.mark.parametrize(
    ("how", "when", "most"),
    [
        (WHILE_LOADED, "as", MOST_WHILE_LOADED),
        (SLOW, "as", MOST_WHILE_LOADED),
        (SOON_AFTER, "right after", MOST_SOON_AFTER),
    ],
)
async def test_one_that_changes_itself_is_held_back_for_longer_each_time(
    yard: Yard, how: str, when: str, most: int
) -> None:
    folder = yard.plant("scribe", MANIFEST, WRITES + how)
    said = f"the version before runs on: it changes its own code {when} it is loaded; it is looked at again in "
    await yard.state("scribe", "loaded")
    for rest in (1, 2):
        await until(partial(is_said, yard, f"{said}{rest} s"))
        assert await answer(yard) == -1
    assert most < count_loads(folder) <= 2 * most + 2


async def test_one_that_changes_itself_and_fails_is_held_back_too(yard: Yard) -> None:
    folder = yard.plant("scribe", MANIFEST, ANSWERS.format(import_time=0, n=1))
    await yard.state("scribe", "loaded")
    save(folder, WRITES + FAILS)
    await until(partial(is_said, yard, "looked at again in 2 s"))
    assert MOST_WHILE_LOADED < count_loads(folder) <= 2 * MOST_WHILE_LOADED + 2
    assert await answer(yard) == 1


async def test_whoever_mends_it_need_not_wait(yard: Yard) -> None:
    folder = yard.plant("scribe", MANIFEST, WRITES + WHILE_LOADED)
    await yard.state("scribe", "loaded")
    await until(partial(is_said, yard, "looked at again in 4 s"))
    rest = yard.hook("scribe")._rest
    assert rest
    await anyio.sleep(2 * SOON)  # later it is nothing of its own
    save(folder, ANSWERS.format(import_time=0, n=2))
    await until(partial(is_live, yard, 2))
    assert (rest.cancel_called, yard.hook("scribe").process.reason) == (True, "")
