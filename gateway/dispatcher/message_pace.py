"""The rate limit of each person. Messages beyond the limit wait; if too many wait, the gateway rejects the rest.

After a while, one reply tells the person how many messages were rejected.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

import anyio
import anyio.abc
import msgspec

from gateway.access.access_control import API, MOST_WAITING
from gateway.dispatcher.context import DispatcherContext
from gateway.errors import EngineError
from gateway.messages.message import Message, Receipt
from gateway.messages.pieces import SAID_KINDS
from gateway.messages.roles import Role
from gateway.yaml_source.units import format_count

log = logging.getLogger(__name__)

CALM = 3.0  # seconds without another rejected message
LONGEST = 60.0
LAST_WORD = 1.0  # seconds at the stop
TOO_FAST = "You have reached the rate limit; I did not accept your last action."
WAITS = "You have reached the rate limit: your last message waits, and I answer it later."
UNTAKEN = (
    "I did not take {count}, the first of {at}: {most} of yours wait for an answer already. Send them again later."
)


class MessagePace(msgspec.Struct, eq=False):
    """Decides which messages wait, and for how long. `say` replies with a text that belongs to no turn."""

    _context: DispatcherContext
    _tasks: anyio.abc.TaskGroup
    _say: Callable[[str, Message, str], Awaitable[None]]
    _untaken: dict[str, int] = {}  # the number of rejected messages, by sender

    def apply(self, message: Message, role: Role) -> Message | None:
        """Return the message; if the message must wait, with the time at which it is due.

        None: the person is over the limit, and the message cannot wait, by its kind or since too many wait already.
        """
        access, now = self._context.access, self._context.engine.clock.latest()
        if message.kind not in SAID_KINDS or message.address.platform == API:
            return None if access.is_too_fast(message, role) else message
        is_stamped = message.sent_at and self._context.chats.is_stamped(message.address)
        pause = access.find_pause(message, role, age=now - message.sent_at if is_stamped else 0.0)
        return replace(message, due=now + pause) if pause else None if pause is None else message

    async def refuse(self, key: str, message: Message) -> Receipt:
        """Reject a message. After the last rejected message, the sender learns how many were rejected."""
        if message.kind not in SAID_KINDS:
            if message.kind != "reaction":
                await self.warn(key, message, TOO_FAST)
        elif message.sender in self._untaken:
            self._untaken[message.sender] += 1
        else:
            self._untaken[message.sender] = 1
            self._tasks.start_soon(self._say_untaken, key, message)
        return Receipt(key, settled=TOO_FAST, decision="too_fast")

    async def warn(self, key: str, message: Message, text: str) -> None:
        """Warn the sender with this text, unless a warning was sent recently."""
        if self._context.access.message_rate.is_warning_due(message):
            await self._say(key, message, text)

    async def _say_untaken(self, key: str, first: Message) -> None:
        """Report the number of rejected messages after the last of them, or when the gateway stops."""
        try:
            with anyio.move_on_after(LONGEST):
                seen = 0
                while seen != self._untaken[first.sender]:
                    seen = self._untaken[first.sender]
                    await anyio.sleep(CALM)
        finally:
            with anyio.move_on_after(LAST_WORD, shield=True):
                await self._say_count(key, first)

    async def _say_count(self, key: str, first: Message) -> None:
        count = format_count(self._untaken.pop(first.sender), "message")
        at = datetime.fromtimestamp(first.sent_at or self._context.engine.clock.latest()).astimezone()
        try:
            await self._say(key, first, UNTAKEN.format(count=count, at=f"{at:%Y-%m-%d %H:%M %Z}", most=MOST_WAITING))
        except EngineError as error:
            log.warning("%s of %s were not taken, and they are not told: %s", count, first.sender, error)
