"""Replies, to Discord: each text in as many messages as it needs, then each file in one of its own.

Each part carries a nonce of its own, by which Discord knows a part that it has already: what is in doubt is sent again.
"""

import io
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import discord

from gateway.adapters.discord.buttons import view_of
from gateway.adapters.discord.channels import DiscordChannels, Writable, id_of, int_of
from gateway.adapters.discord.connection import ERRORS, PLATFORM, as_adapter_error
from gateway.adapters.discord.format import render_messages
from gateway.adapters.discord.pending_commands import PendingCommands
from gateway.adapters.discord.settings import DiscordSettings
from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.files import read_attachment
from gateway.adapters.shared.incoming import RecentMessages
from gateway.messages import Address, Reply
from gateway.outbox import DoubtPolicy

log = logging.getLogger(__name__)

LARGEST = 10_000_000  # what Discord takes where nobody pays for more

T = TypeVar("T")


class DiscordTransport:
    """Fills `Carrier`."""

    platform = PLATFORM
    doubt: DoubtPolicy = "nonce"

    def __init__(
        self,
        places: DiscordChannels,
        calls: PendingCommands,
        recent: RecentMessages,
        settings: DiscordSettings,
        presence: Presence,
    ) -> None:
        self._places = places
        self._calls = calls
        self._recent = recent
        self._presence = presence
        self.can_edit = settings.streaming != "off"

    def parts(self, reply: Reply) -> int:
        return len(render_messages(reply.text)) + len(reply.attachments)

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        texts = render_messages(reply.text)
        what: dict[str, Any] = {"suppress_embeds": True, "silent": reply.silent}
        if part < len(texts):
            what["content"] = texts[part]
        else:
            what["file"] = await self._file(reply, part - len(texts))
        if part == max(len(texts) - 1, 0) and (view := view_of(reply.buttons, await self._asked(reply))):
            what["view"] = view
        sent = await self._call(lambda: self._send(reply, part, nonce, what))
        return (str(sent.id),)

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """A file that was sent stays as it is."""
        texts = render_messages(reply.text)
        if part >= len(texts) or not message_ids:
            return
        view = view_of(reply.buttons, await self._asked(reply)) if part == len(texts) - 1 else None

        async def call() -> None:
            message = await self._places.message(reply.address, message_ids[0])
            await message.edit(content=texts[part], view=view, allowed_mentions=discord.AllowedMentions.none())

        await self._call(call)

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None:
        async def call() -> None:
            for one in message_ids:
                await (await self._places.message(address, one)).delete()

        await self._call(call)

    async def find(self, _reply: Reply, _part: int, _nonce: str) -> tuple[str, ...] | None:
        """Nobody need look: the nonce does."""
        return None

    async def _send(self, reply: Reply, part: int, nonce: str, what: dict[str, Any]) -> Any:
        """The answer of a slash command, if it waits for one; else a message."""
        if part == 0 and (call := self._calls.take(reply.reply_to)) and (hook := await call.hook()):
            try:
                return await hook.send(**what, wait=True)
            except discord.HTTPException as error:
                log.info("the answer of a command comes as a message: %s", as_adapter_error(error))
        where, in_thread = await self._places.find(reply.address)
        if part == 0 and (replied := reference_of(reply, where, in_thread=in_thread)):
            what = {**what, "reference": replied, "mention_author": False}
        return await where.send(**what, nonce=nonce)

    async def _file(self, reply: Reply, number: int) -> discord.File:
        attachment = reply.attachments[number]
        data = await read_attachment(attachment, LARGEST, "Discord")
        return discord.File(io.BytesIO(data), filename=attachment.name or Path(attachment.path).name)

    async def _asked(self, reply: Reply) -> str:
        """Whom the buttons are for: in a group, whoever wrote the message that is answered."""
        if not reply.buttons or reply.address.chat_type == "dm":
            return ""
        number = reply.reply_to.partition(":")[0]
        return self._recent.author(number) or await self._call(lambda: self._author(reply.address, number))

    async def _author(self, address: Address, number: str) -> str:
        """Asked of Discord, after a restart; where nobody knows any more, only admins may press."""
        try:
            message = await (await self._places.message(address, number)).fetch()
        except discord.NotFound:
            return "0"
        return str(message.author.id)

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        """What goes wrong is told in our words."""
        with ERRORS.translated():
            done = await call()
        self._presence.sent()
        return done


def reference_of(reply: Reply, where: Writable, *, in_thread: bool) -> discord.MessageReference | None:
    """Where many talk, an answer stands under what it answers; a thread's first message stands outside of it."""
    number = reply.reply_to.partition(":")[0]
    if reply.address.chat_type == "dm" or not number.isdecimal() or (in_thread and number == reply.address.thread_id):
        return None
    return discord.MessageReference(message_id=int_of(number), channel_id=id_of(where), fail_if_not_exists=False)
