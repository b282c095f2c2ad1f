"""Replies, to Slack: each text in as many messages as it needs, then the files, in one message.

Each message carries its part's nonce where people do not see it; so a part that is in doubt is looked for first. What
stands with files is no Markdown to Slack: a text that is more than plain words has a message of its own.
"""

import html
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.files import FileMessage, LoadedFile, LoadedMessage, OutboundFile
from gateway.adapters.shared.incoming import RecentMessages
from gateway.adapters.shared.send_rate import Rate, RateLimiter
from gateway.adapters.shared.status_reactions import StatusReactions
from gateway.adapters.shared.transport import NetworkTransport
from gateway.adapters.slack.connection import ERRORS, code_of, fetch_messages
from gateway.adapters.slack.format import LIMIT, SlackQuestion, build_body, render_messages, show_literals
from gateway.adapters.slack.interactions import SlackInteractions
from gateway.adapters.slack.settings import SlackSettings
from gateway.errors import AdapterError
from gateway.messages import Address, Button, Reply
from gateway.outbox import DoubtPolicy

LARGEST = 100_000_000
OVERALL, POSTS, EDITS = Rate(30, 0.1), Rate(3, 1.0), Rate(5, 1.2)
NONCE_EVENT = "gateway_reply"
LOOKED_THROUGH = 50  # messages, for one in doubt
NO_MEMBER = ("not_in_channel", "channel_not_found")
FILE = "file:"
MOST_FILES = 10  # in a message
LONGEST_CAPTION = 3000
MARKS = re.compile(
    r"[*_~`#|\[\]\\]|^\s{0,3}(?:>|[-+]{1,3}\s|\d{1,9}[.)]\s|={3})|^ {4}|^\t", re.MULTILINE
)  # of Markdown
UPLOAD = aiohttp.ClientTimeout(total=120)


class SlackTransport(NetworkTransport[str | SlackQuestion]):
    """Fills `Transport`."""

    doubt: DoubtPolicy = "lookup"

    def __init__(
        self,
        web: AsyncWebClient,
        presses: SlackInteractions,
        recent: RecentMessages,
        reactions: StatusReactions,
        settings: SlackSettings,
        presence: Presence,
    ) -> None:
        super().__init__(render_messages, show_literals, LIMIT, ERRORS, settings, presence)
        self._web = web
        self._reactions = reactions
        self._presses = presses
        self._recent = recent
        self._pace = RateLimiter("Slack", OVERALL)
        self._chats: dict[str, str] = {}

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        piece, buttons = self.part(reply, part)
        loaded = await self.load(reply, piece, LARGEST, "Slack")
        channel = await self._channel(reply.address)
        await self._pace.wait(channel, POSTS)
        with self._pace.heeded(channel), self.calling():
            ids: tuple[str, ...] = ()
            for left, one in zip(reversed(range(len(loaded.texts))), loaded.texts, strict=True):
                known = "" if left or loaded.files else nonce  # it is found only where all else is there too
                ids += await self._post(reply, one, buttons, channel, known)
            if loaded.files:
                ids += await self._upload(reply, loaded, channel)
        self._reactions.note_answered(replace(reply.address, chat_id=channel), reply.reply_to)
        return ids

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """A file that was sent stays as it is."""
        piece, buttons = self.part(reply, part)
        if isinstance(piece, FileMessage) or not message_ids or message_ids[0].startswith(FILE):
            return
        channel = await self._channel(reply.address)
        await self._pace.wait(f"{channel}:edits", EDITS)
        what = build_body(piece, buttons, self._asked(reply))
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
        """Among the last messages there, the one with this nonce."""
        channel = await self._channel(reply.address)
        with self._pace.heeded(channel), self.calling():
            found = await fetch_messages(
                self._web, channel, reply.address.thread_id, limit=LOOKED_THROUGH, include_all_metadata=True
            )
        for message in found:
            note = message.get("metadata") or {}
            if note.get("event_type") == NONCE_EVENT and (note.get("event_payload") or {}).get("nonce") == nonce:
                return (str(message["ts"]),)
        return None

    async def _post(
        self, reply: Reply, text: str | SlackQuestion, buttons: tuple[Button, ...], channel: str, nonce: str
    ) -> tuple[str, ...]:
        try:
            sent = await self._web.chat_postMessage(
                channel=channel,
                thread_ts=reply.address.thread_id or None,
                metadata={"event_type": NONCE_EVENT, "event_payload": {"nonce": nonce}},
                unfurl_links=False,
                unfurl_media=False,
                **build_body(text, buttons, self._asked(reply)),
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

    async def _upload(self, reply: Reply, loaded: LoadedMessage[Any], channel: str) -> tuple[str, ...]:
        """In three steps, as Slack wants it; the library's own way of doing them holds up everything else."""
        placed: list[dict[str, str | None]] = [
            {"id": await self._place(file), "title": file.name} for file in loaded.files
        ]
        done = await self._web.files_completeUploadExternal(
            files=placed,
            channel_id=channel,
            thread_ts=reply.address.thread_id or None,
            initial_comment=html.escape(loaded.text, quote=False) if loaded.text else None,
        )
        return tuple(f"{FILE}{one['id']}" for one in done["files"])

    async def _place(self, file: LoadedFile) -> str:
        """The id by which Slack knows a file that it has, and shows nobody yet."""
        place = await self._web.files_getUploadURLExternal(filename=file.name, length=len(file.data))
        assert self._web.session
        async with self._web.session.post(place["upload_url"], data=io.BytesIO(file.data), timeout=UPLOAD) as answer:
            if answer.status != 200:
                raise AdapterError(f"Slack did not take {file.name} ({answer.status})")
        return str(place["file_id"])

    async def _channel(self, address: Address) -> str:
        """The channel; for a person, their own chat with the bot."""
        chat = address.chat_id
        if not chat.startswith(("U", "W")):
            return chat
        if chat not in self._chats:
            with self._pace.heeded(chat), self.calling():
                opened = await self._web.conversations_open(users=chat)
            self._chats[chat] = str(opened["channel"]["id"])
        return self._chats[chat]

    def _asked(self, reply: Reply) -> str:
        """Whom the buttons are for: where many talk, whoever wrote what is answered; nobody known: admins alone."""
        if not reply.buttons or reply.address.chat_type == "dm":
            return ""
        return self._recent.author(reply.reply_to.partition(":")[0]) or "?"
