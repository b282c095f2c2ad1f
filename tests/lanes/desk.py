"""A person who writes, and work that a test can watch and hold up."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc

from gateway.engine.interface import Engine
from gateway.lanes.context import LaneSettings
from gateway.lanes.lanes import Lanes
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.message import Reply
from gateway.messages.transcript import Entry
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import Session
from tests.spine import key, lane_settings, message, until

QUICK = lane_settings(pauses=(0.001,), grace=0.1, release=0.1, lease=0.3)


def echo(turn: LaneTurn, prefix: str = "re ") -> LaneResult:
    """Answers with the words themselves."""
    text = " + ".join(one.text for one in turn.messages)
    reply = Reply(f"{turn.turn_id}:reply", turn.messages[-1].address, prefix + text)
    return LaneResult(entries=(Entry("user", text), Entry("assistant", prefix + text)), replies=(reply,))


@dataclass
class Watched:
    """Work that notes each run; `acts` maps a message's text to what is done instead of an echo."""

    acts: dict[str, Callable[[LaneTurn], Awaitable[LaneResult]]] = field(default_factory=dict)
    runs: list[LaneTurn] = field(default_factory=list)
    gate: anyio.Event = field(default_factory=anyio.Event)
    most: int = 0
    now: int = 0

    @property
    def texts(self) -> list[str]:
        return [turn.messages[0].text for turn in self.runs]

    async def __call__(self, turn: LaneTurn) -> LaneResult:
        self.runs.append(turn)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            act = self.acts.get(turn.messages[0].text)
            return await act(turn) if act else echo(turn)
        finally:
            self.now -= 1

    async def hold(self, turn: LaneTurn) -> LaneResult:
        """Works until the gate is opened."""
        await self.gate.wait()
        return echo(turn)


@dataclass
class Desk:
    """Lanes that run, and the people before them."""

    engine: Engine
    sessions: SessionRepository
    lanes: Lanes
    work: Watched
    tasks: anyio.abc.TaskGroup

    async def say(self, text: str, chat: str = "1", **more: Any) -> int | None:
        return await self.lanes.accept(message(text, chat, **more), key(chat))

    async def session(self, chat: str = "1") -> Session:
        return await self.sessions.open(key(chat))

    async def answered(self, seq: int | None, chat: str = "1") -> Session:
        """Wait until the message is answered."""
        assert seq

        async def is_answered() -> bool:
            return (await self.session(chat)).upto >= seq

        await until(is_answered, f"the answer to {seq}")
        return await self.session(chat)

    async def running(self, count: int) -> None:
        await until(lambda: len(self.work.runs) >= count, f"run {count}")


@asynccontextmanager
async def served(
    engine: Engine,
    work: Watched | None = None,
    settings: LaneSettings = QUICK,
    *,
    node: str = "",
    clock: Callable[[], float] = time.time,
) -> AsyncIterator[Desk]:
    """Lanes over a journal, until the block ends."""
    work = work or Watched()
    sessions = SessionRepository(engine, clock)
    lanes = Lanes(engine, sessions, work, settings, node=node, clock=clock)
    async with anyio.create_task_group() as tasks:
        await tasks.start(lanes.run)
        yield Desk(engine, sessions, lanes, work, tasks)
        tasks.cancel_scope.cancel()
