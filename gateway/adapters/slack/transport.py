"""The sending of replies to Slack: each text in as many messages as it needs, then the files, in one message.

Each message has its part's nonce in its metadata; so a doubtful part is searched for first. Slack does not render the
text beside files as Markdown: so a text that is more than plain words has its own message.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.files import FileMessage, OutboundFile
from gateway.adapters.shared.incoming import RecentMessages
from gateway.adapters.shared.send_rate import Rate, RateLimiter
from gateway.adapters.shared.status_reactions import StatusReactions
from gateway.adapters.shared.transport import NetworkTransport
from gateway.adapters.slack.connection import ERRORS, SlackIdentity, TokenRefused, code_of, fetch_messages
from gateway.adapters.slack.files import FILE, send_files
from gateway.adapters.slack.format import (
    LIMIT,
    SlackQuestion,
    build_body,
    cut_pending,
    find_difference,
    has_link,
    render_messages,
    show_literals,
)
from gateway.adapters.slack.interactions import SlackInteractions
from gateway.adapters.slack.settings import SlackSettings
from gateway.adapters.slack.streams import SlackStreams, make_note, read_nonce
from gateway.messages.message import Address, Button, Reply
from gateway.outbox.interface import DoubtPolicy, nonce_of

LARGEST = 100_000_000
OVERALL, POSTS, EDITS = Rate(30, 0.1), Rate(3, 1.0), Rate(5, 1.2)
LOOKED_THROUGH = 50  # messages that are searched for a doubtful one
NO_MEMBER = ("not_in_channel", "channel_not_found")
MOST_FILES = 10  # in a message
LONGEST_CAPTION = 3000
# Marks of Markdown.
MARKS = re.compile(r"[*_~`#|\[\]\\]|^\s{0,3}(?:>|[-+]{1,3}\s|\d{1,9}[.)]\s|={3})|^ {4}|^\t", re.MULTILINE)


class SlackTransport(NetworkTransport[str | SlackQuestion]):
    """The sending of one bot's replies; fills `Transport`."""

    doubt: DoubtPolicy = "lookup"

    def __init__(
        self,
        web: AsyncWebClient,
        me: SlackIdentity,
        presses: SlackInteractions,
        recent: RecentMessages,
        reactions: StatusReactions,
        settings: SlackSettings,
        presence: Presence,
    ) -> None:
        super().__init__(render_messages, show_literals, LIMIT, ERRORS, settings, presence)
        self._web = web
        self.me = me
        self._reactions = reactions
        self._presses = presses
        self._recent = recent
        self._pace = RateLimiter("Slack", OVERALL)
        self._streams = SlackStreams(web, me, self._pace, self.calling)
        self._chats: dict[str, str] = {}
        self.refusal: TokenRefused | None = None  # a refusal of the bot's token, though the connection is open

    @contextmanager
    def calling(self) -> Iterator[None]:
        try:
            with super().calling():
                yield
        except TokenRefused as refusal:
            self.refusal = refusal
            raise

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        piece, buttons = self.part(reply, part)
        loaded = await self.load(reply, piece, LARGEST, "Slack")
        channel = await self._channel(reply.address)
        await self._pace.wait(channel, POSTS)
        with self._pace.heeded(channel), self.calling():
            ids: tuple[str, ...] = ()
            for left, one in zip(reversed(range(len(loaded.texts))), loaded.texts, strict=True):
                known = "" if left or loaded.files else nonce  # so it is found only if all else is there too
                ids += await self._post(reply, one, buttons, channel, known)
            if loaded.files:
                words = html.escape(str(loaded.text), quote=False) if loaded.text else None
                ids += await send_files(self._web, loaded.files, channel, reply.address.thread_id, words)
        self._reactions.note_answered(replace(reply.address, chat_id=channel), reply.reply_to)
        return ids

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """Edit a text; a file that was sent stays as it is."""
        piece, buttons = self.part(reply, part)
        if isinstance(piece, FileMessage) or not message_ids or message_ids[0].startswith(FILE):
            return
        channel = await self._channel(reply.address)
        await self._pace.wait(f"{channel}:edits", EDITS)
        what = build_body(piece, buttons, find_asked(reply, self._recent))
        with self._pace.heeded(f"{channel}:edits"), self.calling():
            await self._web.chat_update(channel=channel, ts=message_ids[0], **what)

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None:
        channel = await self._channel(address)
        for one in message_ids:
            with self._pace.heeded(channel), self.calling():
                if one.startswith(FILE):
                    await self._web.files_delete(file=one.removeprefix(FILE))
                else:
                    await self._web.chat_delete(channel=channel, ts=one)

    async def find(self, reply: Reply, _part: int, nonce: str) -> tuple[str, ...] | None:
        """Find the message with this nonce among the last ones there."""
        return next(((str(one["ts"]),) for one in await self._fetch(reply) if read_nonce(one) == nonce), None)

    async def find_begun(self, reply: Reply, _part: int, nonce: str) -> tuple[str, ...] | None:
        """Find the message with this nonce, or one of ours that still grows, since that has no nonce yet."""
        for one in await self._fetch(reply):
            is_growing = read_nonce(one) is None and not one.get("files") and one.get("bot_id") == self.me.bot
            if read_nonce(one) == nonce or (is_growing and "" < stamp_of(reply) < str(one["ts"])):
                return (str(one["ts"]),)
        return None

    async def begin(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        """Begin an answer as a stream; without streams there, as a message that will be edited."""
        channel = await self._channel(reply.address)
        person = self._recent.author(stamp_of(reply))
        stamp, text = "", find_lasting(self.part(reply, part))
        if self.is_native and not has_link(text):
            stamp = await self._streams.begin(reply.address, channel, person, text)
        if stamp:
            return (stamp,)
        ids = await self.send(reply, part, nonce)
        self._streams.note_edited(ids)
        return ids

    async def grow(self, reply: Reply, part: int, message_ids: tuple[str, ...], before: Reply | None) -> None:
        """Append the new text; if the text has changed, stop the stream, and edit the message."""
        if message_ids and not self._streams.is_edited(message_ids[0]):
            channel, stamp = await self._channel(reply.address), message_ids[0]
            then = find_lasting(self.part(before, part)) if before else None
            more = find_difference(then, find_lasting(self.part(reply, part)))
            if (
                more is not None
                and not has_link(more)
                and (not more or await self._streams.append(channel, stamp, more))
            ):
                return
            await self._streams.stop(channel, stamp)
        await self.edit(reply, part, message_ids)
        self._streams.note_edited(message_ids)

    async def finish(self, reply: Reply, part: int, message_ids: tuple[str, ...], before: Reply | None) -> None:
        if not message_ids or self._streams.is_edited(message_ids[0]):
            await super().finish(reply, part, message_ids, before)
            return
        piece, buttons = self.part(reply, part)
        then = find_lasting(self.part(before, part)) if before else None
        more = find_difference(then, str(piece))
        is_added = more is not None and not buttons and not has_link(str(piece))
        words = more if more and is_added else ""
        channel, nonce = await self._channel(reply.address), nonce_of(reply.id, part)
        self._reactions.note_answered(replace(reply.address, chat_id=channel), reply.reply_to)
        is_stopped = await self._streams.stop(channel, message_ids[0], words, nonce)
        if not (is_added and is_stopped):
            await self.edit(reply, part, message_ids)
            self._streams.note_edited(message_ids)

    async def close(self, address: Address, message_ids: tuple[str, ...]) -> None:
        if message_ids and not message_ids[0].startswith(FILE):
            await self._streams.stop(await self._channel(address), message_ids[0])

    async def _fetch(self, reply: Reply) -> list[Mapping[str, Any]]:
        """Fetch the messages at the reply's place, after the one that it answers."""
        channel = await self._channel(reply.address)
        how: dict[str, Any] = {"limit": LOOKED_THROUGH, "include_all_metadata": True}
        with self._pace.heeded(channel), self.calling():
            found: list[Mapping[str, Any]] = await fetch_messages(
                self._web, channel, reply.address.thread_id, oldest=stamp_of(reply) or None, **how
            )
        return found

    async def _post(
        self, reply: Reply, text: str | SlackQuestion, buttons: tuple[Button, ...], channel: str, nonce: str
    ) -> tuple[str, ...]:
        try:
            sent = await self._web.chat_postMessage(
                channel=channel,
                thread_ts=reply.address.thread_id or None,
                metadata=make_note(nonce),
                unfurl_links=self.shows_links(reply),
                unfurl_media=self.shows_links(reply),
                **build_body(text, buttons, find_asked(reply, self._recent)),
            )
        except SlackApiError as error:
            if code_of(error) not in NO_MEMBER or not isinstance(text, str):
                raise
            if await self._presses.whisper(reply.reply_to, text):
                return ()
            raise
        return (str(sent["ts"]),)

    def can_caption(self, text: str | SlackQuestion) -> bool:
        return isinstance(text, str) and len(text) <= LONGEST_CAPTION and not MARKS.search(text)

    def can_join(self, files: Sequence[OutboundFile], _more: OutboundFile) -> bool:
        return len(files) < MOST_FILES

    async def _channel(self, address: Address) -> str:
        """Return the channel; for a person, the direct chat with the bot."""
        chat = address.chat_id
        if not chat.startswith(("U", "W")):
            return chat
        if chat not in self._chats:
            with self._pace.heeded(chat), self.calling():
                opened = await self._web.conversations_open(users=chat)
            self._chats[chat] = str(opened["channel"]["id"])
        return self._chats[chat]


def find_asked(reply: Reply, recent: RecentMessages) -> str:
    """Return the person who may press the buttons: in a group the author of the answered message; "?": only admins."""
    if not reply.buttons or reply.address.chat_type == "dm":
        return ""
    return recent.author(stamp_of(reply)) or "?"


def find_lasting(part: tuple[object, object]) -> str:
    """Return the part of a growing text that will not change; files do not grow, and questions are not streamed."""
    return cut_pending(str(part[0]))


def stamp_of(reply: Reply) -> str:
    """Return Slack's id of the answered message; "" if that was not a message."""
    stamp = reply.reply_to.partition(":")[0]
    return stamp if stamp.replace(".", "", 1).isdecimal() else ""
