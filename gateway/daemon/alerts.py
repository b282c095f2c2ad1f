"""A network that stays down is told where somebody sees it: in the home channels of the networks that work.

What mends itself at once is no news, and neither is what somebody paused.
"""

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import anyio.abc

from gateway.daemon.platforms import PAUSED_REASON, PlatformPart
from gateway.hooks import HookRegistry
from gateway.messages import Address, Reply
from gateway.outbox import Outbox

ALERT_AFTER = 14.0


class Alerts:
    """Watches `platform:down` and `platform:up`. On `platforms`."""

    def __init__(self, platforms: Sequence[PlatformPart], outbox: Outbox, patience: float = ALERT_AFTER) -> None:
        self._platforms = platforms
        self._outbox = outbox
        self._patience = patience
        self._down: dict[str, float] = {}  # since when, by the steady clock
        self._told: set[str] = set()
        self._news = anyio.Event()

    async def run(
        self, registry: HookRegistry, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Until cancelled."""
        remove = registry.watch(["platform:up", "platform:down"], self._note)
        try:
            task_status.started()
            while True:
                self._news = anyio.Event()
                await self._look()
                with anyio.move_on_after(self._next()):
                    await self._news.wait()
        finally:
            remove()

    def _note(self, event_type: str, fields: Mapping[str, Any]) -> None:
        name = str(fields["platform"])
        if event_type == "platform:up" or fields["reason"] == PAUSED_REASON:
            self._down.pop(name, None)
        else:
            self._down.setdefault(name, time.monotonic())
        self._news.set()

    async def _look(self) -> None:
        now = time.monotonic()
        for network in self._platforms:
            since = self._down.get(network.name)
            if network.name in self._told and network.presence.facts.up:
                self._told.discard(network.name)
                await self._tell(network.name, f"{network.name} works again.")
            elif since is not None and now - since >= self._patience and network.name not in self._told:
                self._told.add(network.name)
                await self._tell(network.name, f"{network.name} is down: {network.presence.facts.detail}")

    async def _tell(self, about: str, text: str) -> None:
        for network in self._platforms:
            home = network.home_channel
            if network.name != about and home and network.presence.facts.up:
                await self._outbox.post(Reply(uuid.uuid4().hex, Address(network.name, home), text))

    def _next(self) -> float | None:
        """Until the next network has been down for so long; None: nothing is to be waited for."""
        due = [since + self._patience for name, since in self._down.items() if name not in self._told]
        return max(min(due) - time.monotonic(), 0) if due else None
