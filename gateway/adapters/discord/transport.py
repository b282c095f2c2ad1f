"""The sending of replies to Discord: each text in as many messages as it needs, then the files, ten in a message.

Each part has its own nonce, by which Discord recognizes a part that it has already: so a doubtful part is sent again.
"""

import io
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import discord

from gateway.adapters.discord.channels import DiscordChannels, Writable, id_of, int_of
from gateway.adapters.discord.connection import ERRORS, as_adapter_error
from gateway.adapters.discord.files import send_voice_note
from gateway.adapters.discord.format import LIMIT, render_messages, show_literals
from gateway.adapters.discord.pending_commands import PendingCommand, PendingPress
from gateway.adapters.discord.settings import DiscordSettings
from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.buttons import encode_button
from gateway.adapters.shared.files import FileMessage, LoadedFile, OutboundFile
from gateway.adapters.shared.incoming import RecentMessages
from gateway.adapters.shared.status_reactions import StatusReactions
from gateway.adapters.shared.transport import NetworkTransport
from gateway.messages.message import Address, Button, Reply
from gateway.messages.parts import MessagePart, Poll
from gateway.outbox.interface import DoubtPolicy

log = logging.getLogger(__name__)

LARGEST = 10_000_000  # the limit of a server without paid features
MOST_FILES = 10  # in a message
LONGEST_VALUE = 100  # characters in the value of a button
LONGEST_LABEL = 80
LONGEST_OPTION = 55  # of a poll
POLL_TIME = timedelta(days=1)  # the default of Discord's own apps
NO_NOTES = (400, 403)  # Discord's answers where voice notes may not be sent, and files may


class DiscordTransport(NetworkTransport[str]):
    """The sending of one bot's replies; fills `Transport`."""

    doubt: DoubtPolicy = "nonce"

    def __init__(
        self,
        places: DiscordChannels,
        calls: dict[str, PendingCommand],
        presses: dict[str, PendingPress],
        recent: RecentMessages,
        settings: DiscordSettings,
        presence: Presence,
        reactions: StatusReactions,
    ) -> None:
        super().__init__(render_messages, show_literals, LIMIT, ERRORS, settings, presence)
        self._places = places
        self._calls = calls
        self._presses = presses
        self._recent = recent
        self._reactions = reactions

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        piece, buttons = self.part(reply, part)
        loaded = await self.load(reply, piece, LARGEST, "Discord")
        if loaded.files and loaded.files[0].kind == "voice":
            with self.calling():
                if sent_id := await self._say(reply, part, nonce, loaded.files[0]):
                    return (sent_id,)
        what: dict[str, Any] = {"view": view_of(buttons, await self._asked(reply))} if buttons else {}
        messages = [{"content": one, **what} for one in loaded.texts]
        if loaded.files:
            files = [discord.File(io.BytesIO(one.data), filename=one.name) for one in loaded.files]
            messages.append({"content": loaded.text, "files": files, **what})
        if isinstance(loaded.part, Poll):
            messages.append({"poll": poll_of(loaded.part)})
        found = list[str]()
        with self.calling():
            for number, one in enumerate(messages):
                one |= {"suppress_embeds": not self.shows_links(reply), "silent": reply.silent}
                found.append(await self._send(reply, part, f"{nonce}{number or ''}", one))
        self._reactions.note_answered(reply.address, reply.reply_to)
        return tuple(found)

    def can_caption(self, _text: str) -> bool:
        return True

    def can_show(self, part: MessagePart) -> bool:
        return isinstance(part, Poll) and all(len(one) <= LONGEST_OPTION for one in part.options)

    def can_join(self, files: Sequence[OutboundFile], more: OutboundFile) -> bool:
        return len(files) < MOST_FILES and "voice" not in (files[0].kind, more.kind)

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """Edit a text; a file that was sent stays as it is."""
        piece, buttons = self.part(reply, part)
        if isinstance(piece, FileMessage) or not message_ids:
            return
        view = view_of(buttons, await self._asked(reply)) if buttons else None
        what: dict[str, Any] = {"content": piece, "view": view, "allowed_mentions": discord.AllowedMentions.none()}
        with self.calling():
            if (press := self._presses.get(message_ids[0])) and await press.edit(**what):
                return
            message = await self._places.message(reply.address, message_ids[0])
            await message.edit(**what)

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None:
        with self.calling():
            for one in message_ids:
                await (await self._places.message(address, one)).delete()

    async def _send(self, reply: Reply, part: int, nonce: str, what: dict[str, Any]) -> str:
        """Send a message and return its id; it answers the slash command, if that still waits."""
        if part == 0 and (call := self._calls.pop(reply.reply_to, None)):
            try:
                if answered := await call.answer(**what):
                    return answered
            except discord.HTTPException as error:
                log.info("the answer of a command comes as a message: %s", as_adapter_error(error))
        where, in_thread = await self._places.find(reply.address)
        if part == 0 and (replied := reference_of(reply, where, in_thread=in_thread)):
            what = {**what, "reference": replied, "mention_author": False}
        return str((await where.send(**what, nonce=nonce)).id)

    async def _say(self, reply: Reply, part: int, nonce: str, note: LoadedFile) -> str:
        """Send a voice note and return its id; "" if Discord takes none, so that it is sent as a file."""
        where, in_thread = await self._places.find(reply.address)
        replied = reference_of(reply, where, in_thread=in_thread) if part == 0 else None
        how = {"message_reference": replied.to_message_reference_dict()} if replied else {}
        try:
            return await send_voice_note(self._places.http, id_of(where), note.data, nonce=nonce, **how)
        except discord.HTTPException as error:
            if error.status not in NO_NOTES:
                raise
            log.info("a voice note is sent as a file: %s", as_adapter_error(error))
        return ""

    async def _asked(self, reply: Reply) -> str:
        """Return the person who may press the buttons; in a group, the author of the answered message.

        After a restart the author is fetched from Discord; if the message is gone, only admins may press.
        """
        if reply.address.chat_type == "dm":
            return ""
        number = reply.reply_to.partition(":")[0]
        if known := self._recent.author(number):
            return known
        with self.calling():
            try:
                message = await (await self._places.message(reply.address, number)).fetch()
            except discord.NotFound:
                return "0"
        return str(message.author.id)


def reference_of(reply: Reply, where: Writable, *, in_thread: bool) -> discord.MessageReference | None:
    """Return the message to refer to, except in a direct chat; a thread's first message is outside of the thread."""
    number = reply.reply_to.partition(":")[0]
    if reply.address.chat_type == "dm" or not number.isdecimal() or (in_thread and number == reply.address.thread_id):
        return None
    return discord.MessageReference(message_id=int_of(number), channel_id=id_of(where), fail_if_not_exists=False)


def poll_of(part: Poll) -> discord.Poll:
    poll = discord.Poll(part.question, POLL_TIME)
    for one in part.options:
        poll.add_answer(text=one)
    return poll


def view_of(buttons: tuple[Button, ...], asked: str) -> discord.ui.View:
    """Make the buttons, for the person `asked`.

    Discord returns their values to us alone, and no person can change them.

    Raises:
        AdapterError: a value is longer than Discord allows.
    """
    view = discord.ui.View(timeout=None)
    for button in buttons:
        carried = encode_button(button, asked, LONGEST_VALUE, "Discord")
        shown: discord.ui.Button[Any] = discord.ui.Button(label=button.label[:LONGEST_LABEL], custom_id=carried)
        view.add_item(shown)
    view.stop()  # the library need not keep it: presses come to us
    return view
