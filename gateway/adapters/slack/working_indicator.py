"""The sign that somebody is at work: a pair of eyes under the message that is being answered, until it is answered.

Slack shows no bot as typing. The eyes stay no longer than the turn works: they go when it waits for somebody, too.
"""

import logging
import math
import time
from collections.abc import Mapping
from typing import Any

import anyio
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.incoming import remember
from gateway.adapters.slack.connection import ERRORS, PLATFORM
from gateway.hooks import HookRegistry
from gateway.messages import Message

log = logging.getLogger(__name__)

EYES = "eyes"
MOST = 2000


class WorkingIndicator:
    """Watches the turns. `note` tells which message of a place is the last one."""

    def __init__(self, web: AsyncWebClient, account: str = "") -> None:
        self._web = web
        self._when = {"platform": PLATFORM, "account": account}
        self._began = time.time()
        self._last: dict[tuple[str, str], str] = {}
        self._shown: dict[str, tuple[str, str]] = {}  # by turn: channel and message
        self._send, self._changes = anyio.create_memory_object_stream[tuple[str, str]](math.inf)

    def note(self, message: Message) -> None:
        place = (message.address.chat_id, message.address.thread_id)
        remember(self._last, place, message.id.partition(":")[0], MOST)

    async def answered(self, channel: str, stamp: str) -> None:
        """Eyes of an earlier life, which knew the turn: the message that is answered now is older than we are."""
        if stamp.replace(".", "", 1).isdecimal() and float(stamp) < self._began:
            with ERRORS.logged(log.debug, "no eyes in %s", channel):
                await self._web.reactions_remove(channel=channel, timestamp=stamp, name=EYES)

    async def run(self, registry: HookRegistry) -> None:
        """Until cancelled."""
        remove = registry.watch(["agent:start", "agent:end"], self._note, when=self._when)
        try:
            with self._send, self._changes:
                async for change in self._changes:
                    await self._show(*change)
        finally:
            remove()

    def _note(self, event_type: str, fields: Mapping[str, Any]) -> None:
        change = (event_type, str(fields["turn_id"]))
        if event_type == "agent:start":
            place = (str(fields["chat_id"]), str(fields["thread_id"] or ""))
            stamp = self._last.get(place)
            if stamp is None:
                return
            self._shown[change[1]] = (place[0], stamp)
        self._send.send_nowait(change)

    async def _show(self, event_type: str, turn: str) -> None:
        """The sign is worth no error."""
        is_begin = event_type == "agent:start"
        where = self._shown.get(turn) if is_begin else self._shown.pop(turn, None)
        if where is None:
            return
        call = self._web.reactions_add if is_begin else self._web.reactions_remove
        with ERRORS.logged(log.debug, "no sign in %s", where[0]):
            await call(channel=where[0], timestamp=where[1], name=EYES)
