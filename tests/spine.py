"""Common helpers of the tests of sessions, lanes and outbox: a journal on each engine, messages, and waits."""

import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.config.settings import SessionSettings
from gateway.engine.interface import Engine
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import Conflict
from gateway.lanes.context import LanePorts, LaneSettings
from gateway.messages.message import Address, Message
from gateway.records import records, subjects
from gateway.sessions.keys import session_key_of
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import Session
from gateway.testing.live_gateway import until as until  # where tests of the house look for it
from tests.engine.memory_engine import MemoryEngine


@pytest.fixture(params=["memory", "sqlite"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    if request.param == "memory":
        async with MemoryEngine() as memory:
            yield memory
    else:
        async with await open_sqlite(tmp_path / "journal.db") as sqlite:
            yield sqlite


class SetClock:
    """A wall clock that a test sets."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now or time.time()

    def __call__(self) -> float:
        return self.now


ids = itertools.count(1)


def message(text: str, chat: str = "1", user: str = "ann", **more: Any) -> Message:
    """A direct message on a network called net, with an id of its own unless one is given."""
    return Message(more.pop("id", f"m{next(ids)}"), Address("net", chat), user, text, **more)


def lane_settings(**more: Any) -> LaneSettings:
    """Limits that no test reaches by chance."""
    ports = {name: more.pop(name) for name in LanePorts.__struct_fields__ if name in more}
    return LaneSettings(**{"sessions": SessionSettings(), "ports": LanePorts(**ports), **more})


def key(chat: str = "1") -> str:
    return session_key_of(message("", chat), SessionSettings())


async def change_session(
    sessions: SessionRepository, key: str, change: Callable[[Session], records.TurnRecord]
) -> Session:
    """The session after a change that is made anew whenever somebody else was faster."""
    while True:
        session = await sessions.open(key)
        with suppress(Conflict):
            return await sessions.append(session, change(session))


async def chain(engine: Engine, pattern: str) -> list[Any]:
    """Every record under a pattern, decoded."""
    found, after = [], 0
    while page := await engine.read(pattern, after, 500):
        found += [records.decode(record.data) for record in page]
        after = page[-1].seq
    return found


async def turn_chain(engine: Engine, chat: str = "1") -> list[Any]:
    return await chain(engine, subjects.session_subject_of("turn", key(chat)))


async def replies(engine: Engine, chat: str = "1") -> list[str]:
    """The texts that are owed to a chat, in order."""
    return [out.reply.text for out in await chain(engine, subjects.reply_pattern_of_session(key(chat)))]
