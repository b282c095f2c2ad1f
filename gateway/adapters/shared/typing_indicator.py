"""The sign that somebody is at work, shown while a turn runs for a chat, but not while the turn waits for somebody."""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import anyio

from gateway.adapters.shared.status_reactions import address_from
from gateway.chats import FindDisplay
from gateway.hooks import HookRegistry
from gateway.messages import Address

LONGEST_SHOWN = 900.0  # a turn that runs longer shows no sign any more

ShowTyping: TypeAlias = Callable[[Address], Awaitable[None]]


class TypingIndicator:
    """Watches the turns of one bot. `show` makes one sign, which lasts for about `pause` seconds.

    `hide` takes it away, where it would outlast the turn.
    """

    def __init__(
        self, served_as: str, show: ShowTyping, pause: float, display: FindDisplay, hide: ShowTyping | None = None
    ) -> None:
        self._platform, _, self._account = served_as.partition(":")
        self._show = show
        self._hide = hide
        self._display = display
        self._pause = pause
        self._working: dict[str, tuple[Address, float]] = {}
        self._ended: set[Address] = set()
        self._news = anyio.Event()

    async def run(self, registry: HookRegistry) -> None:
        """Until cancelled."""
        when = {"platform": self._platform, "account": self._account}
        remove = registry.watch(["agent:start", "agent:end"], self._note, when=when)
        try:
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
                    await self._show(address)
                with anyio.move_on_after(self._pause):
                    await self._news.wait()
        finally:
            remove()

    def _note(self, event_type: str, fields: Mapping[str, Any]) -> None:
        turn = str(fields["turn_id"])
        if event_type == "agent:end":
            if (ended := self._working.pop(turn, None)) and self._hide:
                self._ended.add(ended[0])
                self._news.set()
            return
        address = address_from(fields)
        if self._display(address).typing:
            self._working[turn] = (address, time.monotonic() + LONGEST_SHOWN)
            self._news.set()

    def _places(self) -> set[Address]:
        """Each once, however many turns run there."""
        now = time.monotonic()
        self._working = {turn: (address, until) for turn, (address, until) in self._working.items() if until > now}
        return {address for address, _ in self._working.values()}
