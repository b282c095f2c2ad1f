"""The sending of replies to Telegram: each text in as many messages as it needs, then the files, by kind as albums.

Telegram cannot tell if a message has arrived, so a doubtful part is sent again.
"""

import io
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace
from telegram import (
    Bot,
    InputFile,
    InputMediaAudio,
    InputMediaDocument,
    InputMediaPhoto,
    InputMediaVideo,
    LinkPreviewOptions,
    Message,
    ReplyParameters,
)
from telegram.error import BadRequest, ChatMigrated

from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.files import FileMessage, LoadedFile, LoadedMessage, OutboundFile, TextFile
from gateway.adapters.shared.markdown_split import count_utf16_units
from gateway.adapters.shared.send_rate import Rate, RateLimiter
from gateway.adapters.shared.transport import NetworkTransport
from gateway.adapters.telegram.answers import watch_answer
from gateway.adapters.telegram.buttons import make_keyboard
from gateway.adapters.telegram.connection import ERRORS
from gateway.adapters.telegram.drafts import TelegramDrafts
from gateway.adapters.telegram.format import LIMIT, TelegramText, render_messages, show_literals
from gateway.adapters.telegram.settings import TelegramSettings
from gateway.errors import AdapterError
from gateway.messages.message import Address, Reply
from gateway.messages.parts import Location, MessagePart, Poll
from gateway.outbox.interface import DoubtPolicy, LiveCapability, nonce_of

log = logging.getLogger(__name__)

LARGEST = 50_000_000  # Telegram's limit for bots
LARGEST_PHOTO = 10_000_000
LONGEST_CAPTION = 1024  # UTF-16 units
MOST_IN_ALBUM = 10
ALBUM_KINDS = {"image": "seen", "video": "seen", "audio": "audio", "document": "document"}
ALBUM_MEDIA: Mapping[str, Callable[..., Any]] = {
    "image": InputMediaPhoto,
    "video": InputMediaVideo,
    "audio": InputMediaAudio,
    "document": InputMediaDocument,
}
UPLOAD = 120.0
TOPIC_IS_GONE = "The topic that this is about was deleted, so the answer comes here:"

# Telegram's own limits; edits count too.
OVERALL_RATE = Rate(30, 1 / 30)
DIRECT_RATE = Rate(5, 1.0)
GROUP_RATE = Rate(10, 3.0)

T = TypeVar("T")
Loaded: TypeAlias = LoadedMessage[TelegramText]


class TelegramTransport(NetworkTransport[TelegramText]):
    """The sending of one bot's replies; fills `Transport`."""

    doubt: DoubtPolicy = "resend"

    def __init__(self, bot: Bot, settings: TelegramSettings, presence: Presence) -> None:
        super().__init__(render_messages, show_literals, LIMIT, ERRORS, settings, presence)
        self._bot = bot
        self._pace = RateLimiter("Telegram", OVERALL_RATE)
        self._drafts = TelegramDrafts(bot, self._pace)

    async def send(self, reply: Reply, part: int, _nonce: str) -> tuple[str, ...]:
        piece, buttons = self.part(reply, part)
        loaded: Loaded = await self.load(reply, piece, LARGEST, "Telegram")
        how = self._placing(reply, part) | {"reply_markup": make_keyboard(buttons)}
        previews = self._preview_of(reply)

        async def call(chat: int | str) -> tuple[str, ...]:
            try:
                return await self._put(chat, loaded, how, previews)
            except BadRequest as error:
                if how["message_thread_id"] is None or "thread not found" not in str(error).lower():
                    raise
            if part == 0:
                await self._bot.send_message(chat, TOPIC_IS_GONE, link_preview_options=NO_PREVIEW)
            return await self._put(chat, loaded, how | {"message_thread_id": None}, previews)

        return await self._call(call, reply.address)

    def can_caption(self, text: TelegramText) -> bool:
        return count_utf16_units(text.text) <= LONGEST_CAPTION

    def can_join(self, files: Sequence[OutboundFile], more: OutboundFile) -> bool:
        kinds = {group_kind_of(one) for one in (*files, more)}
        return len(files) < MOST_IN_ALBUM and len(kinds) == 1 and "" not in kinds

    def _preview_of(self, reply: Reply) -> LinkPreviewOptions:
        return LinkPreviewOptions(is_disabled=not self.shows_links(reply))

    async def _put(
        self, chat: int | str, loaded: Loaded, how: dict[str, Any], previews: LinkPreviewOptions
    ) -> tuple[str, ...]:
        """Send the parts of a message, and return their ids."""
        found = list[str]()
        for one in loaded.texts:
            found += await self._sent(self._say(chat, one, how | {"link_preview_options": previews}))
        if loaded.files:
            found += await self._sent(self._upload(chat, loaded, how))
        if loaded.part:
            found += await self._sent(send_part(self._bot, chat, loaded.part, how))
        return tuple(found)

    async def _sent(self, sending: Awaitable[Message | Sequence[Message]]) -> tuple[str, ...]:
        """Send, and return the ids of the messages.

        A message that Telegram took counts as sent, even if the library cannot read the answer.
        """
        with watch_answer() as answer:
            try:
                sent = await sending
                return tuple(str(one.message_id) for one in ((sent,) if isinstance(sent, Message) else sent))
            except Exception as error:  # the library may raise anything for an answer
                if (found := answer.find_sent()) is None:
                    raise
                log.warning("Telegram took a message and answered what cannot be read: %s", type(error).__name__)
                return found

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """Edit a text; a file that was sent stays as it is."""
        piece, buttons = self.part(reply, part)
        if isinstance(piece, FileMessage) or not message_ids:
            return
        edit = partial(
            self._bot.edit_message_text,
            piece.text,
            message_id=int(message_ids[0]),
            entities=piece.entities,
            reply_markup=make_keyboard(buttons),
            link_preview_options=self._preview_of(reply),
        )
        try:
            await self._call(edit, reply.address)
        except AdapterError as error:
            if "not modified" not in str(error):
                raise

    def capability(self, address: Address) -> LiveCapability:
        can_draft = self.can_edit and self.is_native and self._drafts.can_show(address)
        return LiveCapability(self.can_edit, can_draft)

    async def draft(self, reply: Reply, part: int) -> bool:
        piece, _ = self.part(reply, part)
        assert isinstance(piece, TelegramText), "files are not shown before they are sent"
        name = nonce_of(reply.id, part)
        return await self._drafts.show(reply.address.chat_id, thread_of(reply.address), name, piece)

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None:
        ids = [int(one) for one in message_ids]
        await self._call(partial(self._bot.delete_messages, message_ids=ids), address)

    def _placing(self, reply: Reply, part: int) -> dict[str, Any]:
        """Return the place in the chat: the topic, and in a group the answered message."""
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
            return await self._bot.send_message(chat, piece.text, entities=piece.entities, **how)
        except BadRequest as error:
            if piece.is_literal or not piece.entities or "entit" not in str(error).lower():
                raise
        return await self._bot.send_message(chat, piece.text, **how)

    async def _upload(self, chat: int | str, loaded: Loaded, how: dict[str, Any]) -> Message | Sequence[Message]:
        """Send files; those that Telegram refuses as pictures or other media go as documents."""
        try:
            return await self._send_files(chat, loaded, how)
        except BadRequest as error:
            log.info("%s is sent as a document: %s", loaded.files[0].name, error)
        bare = loaded.text and TelegramText(loaded.text.text, ())
        documents = tuple(replace(one, kind="document") for one in loaded.files)
        return await self._send_files(chat, replace(loaded, files=documents, text=bare), how)

    async def _send_files(self, chat: int | str, loaded: Loaded, how: dict[str, Any]) -> Message | Sequence[Message]:
        words: dict[str, Any] = {}
        if loaded.text:
            words = {"caption": loaded.text.text, "caption_entities": loaded.text.entities}
        if len(loaded.files) > 1:
            how = {name: value for name, value in how.items() if name != "reply_markup"}
            first, *others = loaded.files
            media = [media_of(first, words), *(media_of(one, {}) for one in others)]
            return await self._bot.send_media_group(chat, media, write_timeout=UPLOAD, **how)
        (file,) = loaded.files
        send: dict[str, Callable[..., Awaitable[Message]]] = {
            "image": self._bot.send_photo,
            "audio": self._bot.send_audio,
            "voice": self._bot.send_voice,
            "video": self._bot.send_video,
        }
        is_photo = file.kind != "image" or len(file.data) <= LARGEST_PHOTO
        call = send.get(file.kind, self._bot.send_document) if is_photo else self._bot.send_document
        return await call(chat, file_of(file), write_timeout=UPLOAD, **words, **how)

    async def _call(self, call: Callable[[int | str], Awaitable[T]], address: Address) -> T:
        """Make a call, and repeat it if the group has moved; errors are raised in our words."""
        await self._pace.wait(address.chat_id, DIRECT_RATE if address.chat_type == "dm" else GROUP_RATE)
        with self._pace.heeded(address.chat_id), self.calling():
            try:
                return await call(chat_of(address))
            except ChatMigrated as error:
                return await call(error.new_chat_id)


async def send_part(bot: Bot, chat: int | str, part: MessagePart, how: dict[str, Any]) -> Message:
    match part:
        case Poll():
            return await bot.send_poll(chat, part.question, list(part.options), **how)
        case Location(title=title) if title:
            return await bot.send_venue(chat, part.latitude, part.longitude, title, part.address or title, **how)
        case Location():
            return await bot.send_location(chat, part.latitude, part.longitude, **how)
    raise AssertionError(f"{part} is said in words")


NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


def group_kind_of(file: OutboundFile) -> str:
    """Return the kind of album: pictures and videos, audio, or documents; "" for a voice note, which is in none."""
    if isinstance(file, TextFile) or (file.kind == "image" and file.size > LARGEST_PHOTO):
        return "document"
    return ALBUM_KINDS.get(file.kind, "")


def media_of(file: LoadedFile, words: dict[str, Any]) -> Any:
    """Make a file a part of an album."""
    kind = file.kind if file.kind != "image" or len(file.data) <= LARGEST_PHOTO else "document"
    return ALBUM_MEDIA[kind](file.data, filename=file.name, **words)


def file_of(file: LoadedFile) -> InputFile:
    return InputFile(io.BytesIO(file.data), filename=file.name, read_file_handle=True)


def chat_of(address: Address) -> int | str:
    chat = address.chat_id
    return int(chat) if chat.removeprefix("-").isdecimal() else chat


def thread_of(address: Address) -> int | None:
    return int(address.thread_id) if address.thread_id.isdecimal() else None
