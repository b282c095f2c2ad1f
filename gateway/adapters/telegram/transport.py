"""Replies, to Telegram: each text in as many messages as it needs, then each file in one of its own.

Telegram cannot be asked whether a message arrived, so a part in doubt is sent again.
"""

import io
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from telegram import Bot, InputFile, LinkPreviewOptions, Message, ReplyParameters
from telegram.error import BadRequest, ChatMigrated

from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.files import LoadedFile, OutboundFile
from gateway.adapters.shared.send_rate import Rate, RateLimiter
from gateway.adapters.shared.transport import NetworkTransport
from gateway.adapters.telegram.answers import watch_answer
from gateway.adapters.telegram.buttons import make_keyboard
from gateway.adapters.telegram.connection import ERRORS
from gateway.adapters.telegram.format import LIMIT, TelegramText, render_messages, show_literals
from gateway.adapters.telegram.settings import TelegramSettings
from gateway.errors import AdapterError
from gateway.messages import Address, Reply
from gateway.outbox import DoubtPolicy

log = logging.getLogger(__name__)

LARGEST = 50_000_000  # what Telegram takes from bots
LARGEST_PHOTO = 10_000_000
UPLOAD = 120.0
TOPIC_IS_GONE = "The topic that this is about was deleted, so the answer comes here:"

# What Telegram's own answers to "how fast" say; edits count too.
OVERALL_RATE = Rate(30, 1 / 30)
DIRECT_RATE = Rate(5, 1.0)
GROUP_RATE = Rate(10, 3.0)

T = TypeVar("T")


class TelegramTransport(NetworkTransport[TelegramText]):
    """Fills `Transport`."""

    doubt: DoubtPolicy = "resend"

    def __init__(self, bot: Bot, settings: TelegramSettings, presence: Presence) -> None:
        super().__init__(render_messages, show_literals, LIMIT, ERRORS, settings, presence)
        self._bot = bot
        self._pace = RateLimiter("Telegram", OVERALL_RATE)

    async def send(self, reply: Reply, part: int, _nonce: str) -> tuple[str, ...]:
        piece, buttons = self.part(reply, part)
        loaded = await self.load(reply, piece, LARGEST, "Telegram")
        how = self._placing(reply, part) | {"reply_markup": make_keyboard(buttons)}

        async def call(chat: int | str) -> tuple[str, ...]:
            try:
                return await self._put(chat, loaded, how)
            except BadRequest as error:
                if how["message_thread_id"] is None or "thread not found" not in str(error).lower():
                    raise
            if part == 0:
                await self._bot.send_message(chat, TOPIC_IS_GONE, link_preview_options=NO_PREVIEW)
            return await self._put(chat, loaded, how | {"message_thread_id": None})

        return await self._call(call, reply.address)

    async def _put(self, chat: int | str, piece: TelegramText | LoadedFile, how: dict[str, Any]) -> tuple[str, ...]:
        """The ids of what was sent. What Telegram took has arrived, even if its answer cannot be read."""
        sending = self._upload(chat, piece, how) if isinstance(piece, LoadedFile) else self._say(chat, piece, how)
        with watch_answer() as answer:
            try:
                return (str((await sending).message_id),)
            except Exception as error:  # whatever the library makes of an answer
                if (found := answer.find_sent()) is None:
                    raise
                log.warning("Telegram took a message and answered what cannot be read: %s", type(error).__name__)
                return found

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """A file that was sent stays as it is."""
        piece, buttons = self.part(reply, part)
        if isinstance(piece, OutboundFile) or not message_ids:
            return
        edit = partial(
            self._bot.edit_message_text,
            piece.text,
            message_id=int(message_ids[0]),
            entities=piece.entities,
            reply_markup=make_keyboard(buttons),
            link_preview_options=NO_PREVIEW,
        )
        try:
            await self._call(edit, reply.address)
        except AdapterError as error:
            if "not modified" not in str(error):
                raise

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None:
        ids = [int(one) for one in message_ids]
        await self._call(partial(self._bot.delete_messages, message_ids=ids), address)

    def _placing(self, reply: Reply, part: int) -> dict[str, Any]:
        """Where in the chat: the topic, and where many talk, under the message that is answered."""
        how: dict[str, Any] = {
            "message_thread_id": thread_of(reply.address),
            "disable_notification": reply.silent or None,
        }
        replied = reply.reply_to.partition(":")[0]
        if part == 0 and reply.address.chat_type != "dm" and replied.isdecimal():
            how["reply_parameters"] = ReplyParameters(int(replied), allow_sending_without_reply=True)
        return how

    async def _say(self, chat: int | str, piece: TelegramText, how: dict[str, Any]) -> Message:
        try:
            return await self._bot.send_message(
                chat, piece.text, entities=piece.entities, link_preview_options=NO_PREVIEW, **how
            )
        except BadRequest as error:
            if piece.is_literal or not piece.entities or "entit" not in str(error).lower():
                raise
        return await self._bot.send_message(chat, piece.text, link_preview_options=NO_PREVIEW, **how)

    async def _upload(self, chat: int | str, loaded: LoadedFile, how: dict[str, Any]) -> Message:
        file = InputFile(io.BytesIO(loaded.data), filename=loaded.name, read_file_handle=True)
        send: dict[str, Callable[..., Awaitable[Message]]] = {
            "image": self._bot.send_photo,
            "audio": self._bot.send_audio,
            "voice": self._bot.send_voice,
            "video": self._bot.send_video,
        }
        if loaded.kind in send and (loaded.kind != "image" or len(loaded.data) <= LARGEST_PHOTO):
            try:
                return await send[loaded.kind](chat, file, write_timeout=UPLOAD, **how)
            except BadRequest as error:
                log.info("%s is sent as a document: %s", file.filename, error)
        return await self._bot.send_document(chat, file, write_timeout=UPLOAD, **how)

    async def _call(self, call: Callable[[int | str], Awaitable[T]], address: Address) -> T:
        """A call, once more where the group has moved; what goes wrong is told in our words."""
        await self._pace.wait(address.chat_id, DIRECT_RATE if address.chat_type == "dm" else GROUP_RATE)
        with self._pace.heeded(address.chat_id), self.calling():
            try:
                return await call(chat_of(address))
            except ChatMigrated as error:
                return await call(error.new_chat_id)


NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


def chat_of(address: Address) -> int | str:
    chat = address.chat_id
    return int(chat) if chat.removeprefix("-").isdecimal() else chat


def thread_of(address: Address) -> int | None:
    return int(address.thread_id) if address.thread_id.isdecimal() else None
