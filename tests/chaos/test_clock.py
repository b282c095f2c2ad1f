"""The machine's clock is set, while turns run and while none does: nothing is lost, every message is answered."""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.control.client import ControlClient
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import NotRunning
from gateway.records import records, subjects
from tests.audit import audit
from tests.chaos.daemon import Besieged
from tests.chaos.machine import set_clock
from tests.engine.conftest import JUMPS

pytestmark = pytest.mark.process

PEOPLE = 4
PATIENCE = 90.0
numbers = itertools.count()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Besieged]:
    with Besieged(tmp_path / "home", tmp_path / "clock") as gateway:
        slow = {"user": "slow", "answers": [{"chunks": ["slow", " answer"], "delay": "300ms"}]}
        quick = {"user": "quick", "answers": [{"text": "quick answer"}]}
        gateway.script(slow, quick, settings="sessions: {reset: idle}\n")
        start(gateway)
        yield gateway


def start(gateway: Besieged) -> None:
    gateway.process = gateway.spawn("run")
    gateway.until(lambda: is_ready(gateway), PATIENCE)


def is_ready(gateway: Besieged) -> bool:
    assert gateway.process
    assert gateway.process.poll() is None, "it ended by itself; see its log"
    try:
        return bool(gateway.call("status")["state"] == "ready")
    except (NotRunning, OSError):
        return False


def say(gateway: Besieged, lines: ExitStack) -> dict[str, tuple[str, str]]:
    """Everybody says something that takes a while and something behind it; when this returns, turns are under way."""
    said: dict[str, tuple[str, str]] = {}
    before = find_last_claim(gateway)
    for person in range(PEOPLE):
        for text in ("slow", "quick"):
            line = lines.enter_context(ControlClient(gateway.home.socket))
            name = f"m{next(numbers)}"
            line.start("chat.say", {"text": text, "session": f"p{person}", "id": name})
            said[name] = (f"p{person}", text)
    gateway.until(lambda: find_last_claim(gateway) > before, PATIENCE)
    return said


def find_last_claim(gateway: Besieged) -> int:
    """The sequence of the last turn that was begun, which stays when the turn is over."""
    with closing(sqlite3.connect(gateway.home.journal)) as db:
        query = 'SELECT coalesce(max(seq), 0) FROM log WHERE CAST(data AS TEXT) LIKE \'%"kind":"claim"%\''
        return int(db.execute(query).fetchone()[0])


def unanswered(gateway: Besieged, said: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """List messages without an answer, or with a wrong one, asked for by the same id again.

    One answer may be for both texts.
    """
    found = {}
    for name, (session, text) in said.items():
        with ControlClient(gateway.home.socket, PATIENCE) as line:
            found[name] = line.call("chat.say", {"text": text, "session": session, "id": name})
    return {name: how for name, how in found.items() if how["reply"] not in ("slow answer", "quick answer")}


@pytest.mark.timeout(400)
def test_no_jump_of_the_clock_loses_a_message(gateway: Besieged) -> None:
    """In the middle of turns, and between two processes of which the first was killed in the middle of them."""
    for jump in JUMPS:
        with ExitStack() as lines:
            said = say(gateway, lines)
            set_clock(gateway.clock, jump)
            assert unanswered(gateway, said) == {}, f"a jump of {jump:.0f} s in the middle"
        with ExitStack() as lines:
            said = say(gateway, lines)
            gateway.kill()
        set_clock(gateway.clock, 0.0)
        start(gateway)
        assert unanswered(gateway, said) == {}, f"a jump of {-jump:.0f} s between two processes"
    gateway.stop()
    anyio.run(judge, gateway, len(JUMPS) * 4 * PEOPLE)


async def judge(gateway: Besieged, count: int) -> None:
    async with await open_sqlite(gateway.home.journal) as engine:
        found = await audit(engine, is_sent=True)
        assert await engine.read(subjects.DEAD_SUBJECTS) == []
        begun = [one async for one in records.read_all(engine, subjects.TURN_SUBJECTS, records.SessionOpened)]
        assert len(begun) == PEOPLE, "nobody was silent for a day"
    assert found.faults == []
    assert found.inbound == count, "all of them are still in the journal"
