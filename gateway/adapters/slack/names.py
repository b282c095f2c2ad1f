"""The names of people and channels: Slack's events have only ids, so the bot looks each one up, once an hour.

A message waits for them for a moment at most, and is then taken without a name; a failure here does not stop it.
"""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import anyio
import msgspec
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.adapter import AdapterContext
from gateway.adapters.shared.inbox import KeyedLock
from gateway.adapters.shared.incoming import remember
from gateway.adapters.slack.connection import ERRORS
from gateway.messages.message import Message

log = logging.getLogger(__name__)

LONGEST_WAIT = 1.5  # seconds: Slack repeats an event without an acknowledgement within three
KEPT, NOT_ASKED_AGAIN = 3600.0, 60.0
MOST_NAMES = 10_000
CHANNELS, PAGE = "public_channel,private_channel,mpim", 200

AskName: TypeAlias = Callable[[str], Awaitable[str]]


class SlackNames(msgspec.Struct, eq=False):
    """Adds to messages the names of their authors and channels."""

    _web: AsyncWebClient
    _known: dict[str, tuple[str, float]] = {}  # by id: the name, and its expiry
    _asking: KeyedLock = msgspec.field(default_factory=KeyedLock)

    async def add_to(self, message: Message) -> Message:
        """Add the names to a message.

        A name that Slack does not return in time stays empty, and is not asked for in the next minute.
        """
        person, chat = "" if message.extra.get("is_bot") else message.user_id, message.address.chat_id
        asked: dict[str, AskName] = {person: self._ask_person} if person and not message.user_name else {}
        if message.address.chat_type != "dm":
            asked[chat] = self._ask_channel
        await self._learn(asked)
        name = self._name_of(chat) if chat in asked else ""
        extra = {**message.extra, "chat_name": name} if name else message.extra
        return replace(message, user_name=message.user_name or self._name_of(person), extra=extra)

    async def list_channels(self) -> AsyncIterator[tuple[str, str]]:
        """Yield the channels that the bot is in: the id and the name."""
        cursor = ""
        while True:
            page = await self._web.users_conversations(
                types=CHANNELS, exclude_archived=True, limit=PAGE, cursor=cursor or None
            )
            for one in page["channels"]:
                yield str(one["id"]), str(one.get("name") or "")
            if not (cursor := (page.get("response_metadata") or {}).get("next_cursor") or ""):
                return

    async def keep_listed(self, context: AdapterContext) -> None:
        """List the channels once an hour until cancelled. A failure changes nothing."""
        while True:
            with ERRORS.logged(log.info, "the channels are not listed"):
                listed = [context.make_chat_name(*one) async for one in self.list_channels()]
                context.parts.places.chat_names.names.learn_chats(context.served_as, listed)
            await anyio.sleep(KEPT)

    async def _learn(self, asked: Mapping[str, AskName]) -> None:
        with anyio.move_on_after(LONGEST_WAIT):
            async with anyio.create_task_group() as tasks:
                for identity, ask in asked.items():
                    tasks.start_soon(self._ask, identity, ask)

    async def _ask(self, identity: str, ask: AskName) -> None:
        """Ask for one name; a message that needs it meanwhile waits for the same answer."""
        async with self._asking.hold(identity):
            if identity in self._known and time.monotonic() < self._known[identity][1]:
                return
            self._keep(identity, self._name_of(identity), NOT_ASKED_AGAIN)
            try:
                self._keep(identity, str(await ask(identity)), KEPT)
            except Exception as error:  # noqa: BLE001 - whatever it is, the message is taken
                log.info("Slack does not tell the name of %s: %s", identity, error)

    async def _ask_person(self, person: str) -> str:
        user: Mapping[str, Any] = (await self._web.users_info(user=person))["user"]
        profile = user.get("profile") or {}
        names = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"), user.get("name"))
        return next((one for one in names if one), "")

    async def _ask_channel(self, channel: str) -> str:
        return (await self._web.conversations_info(channel=channel))["channel"].get("name") or ""

    def _keep(self, identity: str, name: str, seconds: float) -> None:
        self._known.pop(identity, None)
        remember(self._known, identity, (name, time.monotonic() + seconds), MOST_NAMES)

    def _name_of(self, identity: str) -> str:
        return self._known.get(identity, ("", 0.0))[0]
