"""Replies, to Slack: each text in as many messages as it needs, then each file in one of its own.

Each message carries its part's nonce where people do not see it; so a part that is in doubt is looked for first.
"""

import io
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.files import read_attachment
from gateway.adapters.shared.incoming import RecentMessages
from gateway.adapters.shared.send_rate import Rate, RateLimiter
from gateway.adapters.slack.connection import ERRORS, PLATFORM, code_of
from gateway.adapters.slack.format import build_body, render_messages
from gateway.adapters.slack.interactions import SlackInteractions
from gateway.adapters.slack.settings import SlackSettings
from gateway.adapters.slack.working_indicator import WorkingIndicator
from gateway.errors import AdapterError
from gateway.messages import Address, Reply
from gateway.outbox import DoubtPolicy

LARGEST = 100_000_000
OVERALL, POSTS, EDITS = Rate(30, 0.1), Rate(3, 1.0), Rate(5, 1.2)
NONCE_EVENT = "gateway_reply"
LOOKED_THROUGH = 50  # messages, for one in doubt
NO_MEMBER = ("not_in_channel", "channel_not_found")
FILE = "file:"
UPLOAD = aiohttp.ClientTimeout(total=120)

T = TypeVar("T")


class SlackTransport:
    """Fills `Carrier`."""

    platform = PLATFORM
    doubt: DoubtPolicy = "lookup"

    def __init__(
        self,
        web: AsyncWebClient,
        presses: SlackInteractions,
        recent: RecentMessages,
        sign: WorkingIndicator,
        settings: SlackSettings,
        presence: Presence,
    ) -> None:
        self._web = web
        self._sign = sign
        self._presses = presses
        self._recent = recent
        self._presence = presence
        self._pace = RateLimiter("Slack", OVERALL)
        self._chats: dict[str, str] = {}
        self.can_edit = settings.streaming != "off"

    def parts(self, reply: Reply) -> int:
        return len(render_messages(reply.text)) + len(reply.attachments)

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        texts = render_messages(reply.text)
        channel = await self._channel(reply.address)
        await self._pace.wait(channel, POSTS)
        if part >= len(texts):
            return await self._upload(reply, part - len(texts), channel)
        buttons = reply.buttons if part == len(texts) - 1 else ()
        what = build_body(texts[part], buttons, self._asked(reply))
        note = {"event_type": NONCE_EVENT, "event_payload": {"nonce": nonce}}

        async def call() -> str:
            try:
                sent = await self._web.chat_postMessage(
                    channel=channel,
                    thread_ts=reply.address.thread_id or None,
                    metadata=note,
                    unfurl_links=False,
                    unfurl_media=False,
                    **what,
                )
            except SlackApiError as error:
                if code_of(error) in NO_MEMBER and await self._presses.whisper(reply.reply_to, texts[part]):
                    return ""
                raise
            return str(sent["ts"])

        stamp = await self._call(call, channel)
        if part == 0:
            await self._sign.answered(channel, reply.reply_to)
        return (stamp,) if stamp else ()

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """A file that was sent stays as it is."""
        texts = render_messages(reply.text)
        if part >= len(texts) or not message_ids or message_ids[0].startswith(FILE):
            return
        channel = await self._channel(reply.address)
        await self._pace.wait(f"{channel}:edits", EDITS)
        what = build_body(texts[part], reply.buttons if part == len(texts) - 1 else (), self._asked(reply))
        await self._call(lambda: self._web.chat_update(channel=channel, ts=message_ids[0], **what), f"{channel}:edits")

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None:
        channel = await self._channel(address)
        for one in message_ids:
            if one.startswith(FILE):
                number = one.removeprefix(FILE)
                await self._call(lambda number=number: self._web.files_delete(file=number), channel)  # type: ignore[misc]
            else:
                await self._call(lambda one=one: self._web.chat_delete(channel=channel, ts=one), channel)  # type: ignore[misc]

    async def find(self, reply: Reply, _part: int, nonce: str) -> tuple[str, ...] | None:
        """Among the last messages there, the one with this nonce."""
        channel, thread = await self._channel(reply.address), reply.address.thread_id
        how: dict[str, Any] = {"channel": channel, "limit": LOOKED_THROUGH, "include_all_metadata": True}

        async def call() -> Any:
            if thread:
                return await self._web.conversations_replies(ts=thread, **how)
            return await self._web.conversations_history(**how)

        for message in (await self._call(call, channel))["messages"]:
            note = message.get("metadata") or {}
            if note.get("event_type") == NONCE_EVENT and (note.get("event_payload") or {}).get("nonce") == nonce:
                return (str(message["ts"]),)
        return None

    async def _upload(self, reply: Reply, number: int, channel: str) -> tuple[str, ...]:
        """In three steps, as Slack wants it; the library's own way of doing them holds up everything else."""
        attachment = reply.attachments[number]
        data = await read_attachment(attachment, LARGEST, "Slack")
        name = attachment.name or Path(attachment.path).name

        async def call() -> tuple[str, ...]:
            place = await self._web.files_getUploadURLExternal(filename=name, length=len(data))
            assert self._web.session
            async with self._web.session.post(place["upload_url"], data=io.BytesIO(data), timeout=UPLOAD) as answer:
                if answer.status != 200:
                    raise AdapterError(f"Slack did not take {name} ({answer.status})")
            done = await self._web.files_completeUploadExternal(
                files=[{"id": place["file_id"], "title": name}],
                channel_id=channel,
                thread_ts=reply.address.thread_id or None,
            )
            return tuple(f"{FILE}{one['id']}" for one in done["files"])

        return await self._call(call, channel)

    async def _channel(self, address: Address) -> str:
        """The channel; for a person, their own chat with the bot."""
        chat = address.chat_id
        if not chat.startswith(("U", "W")):
            return chat
        if chat not in self._chats:
            opened = await self._call(lambda: self._web.conversations_open(users=chat), chat)
            self._chats[chat] = str(opened["channel"]["id"])
        return self._chats[chat]

    def _asked(self, reply: Reply) -> str:
        """Whom the buttons are for: where many talk, whoever wrote what is answered; nobody known: admins alone."""
        if not reply.buttons or reply.address.chat_type == "dm":
            return ""
        return self._recent.author(reply.reply_to.partition(":")[0]) or "?"

    async def _call(self, call: Callable[[], Awaitable[T]], where: str) -> T:
        """What goes wrong is told in our words; whoever is told to be silent makes all others silent there."""
        with self._pace.heeded(where), ERRORS.translated():
            done = await call()
        self._presence.sent()
        return done
