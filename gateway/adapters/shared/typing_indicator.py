"""The typing sign of the bot, shown while a turn runs for a chat, but not while the turn waits for a person."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeAlias

import anyio
import msgspec
from anyio.abc import TaskStatus

from gateway.chats.rules import FindDisplay
from gateway.dispatcher.turn_signs import LASTS, TurnSign, tail_turn_signs
from gateway.engine.interface import Engine
from gateway.messages.message import Address

LONGEST_SHOWN = 900.0  # seconds: a turn that runs longer shows no sign any more

ShowTyping: TypeAlias = Callable[[Address], Awaitable[None]]
ShowsWords: TypeAlias = Callable[[Address, float], bool]


class ShownTurn(msgspec.Struct):
    """A running turn, by its last signs of life."""

    address: Address
    began: float
    heard: float


class TypingIndicator(msgspec.Struct, eq=False):
    """The typing signs for the turns of one bot. `show` makes one sign, which lasts for about `pause` seconds.

    `hide` removes a sign that would outlast the turn. A growing answer needs no sign beside it: `shows_words`.
    """

    _served_as: str
    _show: ShowTyping
    _pause: float
    _display: FindDisplay
    _shows_words: ShowsWords
    _hide: ShowTyping | None = None
    lasts: float = LASTS
    _working: dict[str, ShownTurn] = {}
    _ended: set[Address] = set()
    _news: anyio.Event = msgspec.field(default_factory=anyio.Event)

    async def run(self, engine: Engine, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the turns and show their signs, until cancelled. Start it before the bot is up."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hear, await tail_turn_signs(engine, self._served_as))
            task_status.started()
            while True:
                if not self._working and not self._ended:
                    await self._news.wait()
                self._news = anyio.Event()
                places = self._places()
                ended, self._ended = self._ended - places, set()
                if self._hide:
                    for address in ended:
                        await self._hide(address)
                for address in places:
                    if not self._shows_words(address, self._pause):
                        await self._show(address)
                with anyio.move_on_after(self._pause):
                    await self._news.wait()

    async def _hear(self, signs: AsyncIterator[TurnSign]) -> None:
        async for sign in signs:
            self._note(sign)

    def _note(self, sign: TurnSign) -> None:
        now, known = time.monotonic(), self._working.get(sign.turn_id)
        if sign.state != "working":
            self._end([sign.turn_id])
        elif known:
            known.heard = now
        elif self._display(sign.address).typing:
            self._working[sign.turn_id] = ShownTurn(sign.address, now, now)
            self._news.set()

    def _places(self) -> set[Address]:
        """Return the places of running turns, each once."""
        now = time.monotonic()
        self._end([turn for turn, one in self._working.items() if now - one.heard >= self.lasts])
        return {one.address for one in self._working.values() if now - one.began < LONGEST_SHOWN}

    def _end(self, turns: Iterable[str]) -> None:
        for turn in turns:
            if (ended := self._working.pop(turn, None)) and self._hide:
                self._ended.add(ended.address)
                self._news.set()
