"""Files that people send: which a message has, and how they are fetched."""

from pathlib import Path

import msgspec
from telegram import Bot, Message
from telegram.error import InvalidToken

from gateway.adapters.shared import files
from gateway.adapters.telegram.connection import ERRORS
from gateway.errors import AdapterError
from gateway.messages.message import Attachment, AttachmentKind

LARGEST = 20_000_000  # what Telegram hands out to bots


class TelegramFile(msgspec.Struct, frozen=True):
    """A file that lies at Telegram."""

    about: Attachment
    file_id: str
    identity: str


def file_of(message: Message) -> TelegramFile | None:
    """The file of a message; of a picture the largest that there is."""
    if message.photo:
        best = message.photo[-1]
        about = Attachment("image", "", "photo.jpg", "image/jpeg", best.file_size or 0)
        return TelegramFile(about, best.file_id, best.file_unique_id)
    fields: tuple[tuple[AttachmentKind, str, str, str], ...] = (
        ("voice", "voice", "voice.ogg", "audio/ogg"),
        ("audio", "audio", "audio.mp3", "audio/mpeg"),
        ("video", "video", "video.mp4", "video/mp4"),
        ("video", "video_note", "video.mp4", "video/mp4"),
        ("video", "animation", "animation.mp4", "video/mp4"),
        ("document", "document", "file", "application/octet-stream"),
    )
    for kind, field, name, media_type in fields:
        if (file := getattr(message, field)) is not None:
            named = getattr(file, "file_name", None) or name
            typed = getattr(file, "mime_type", None) or media_type
            about = Attachment(kind, "", named, typed, file.file_size or 0)
            return TelegramFile(about, file.file_id, file.file_unique_id)
    return None


async def fetch_file(file: TelegramFile, folder: Path, bot: Bot) -> Attachment | str:
    """The file in our store, or in words why it is not there."""

    async def download() -> bytes:
        with ERRORS.translated():
            try:
                found = await bot.get_file(file.file_id)
                if (found.file_size or 0) > LARGEST:  # with a message Telegram need not say it
                    raise AdapterError(f"it has {(found.file_size or 0) / 1e6:.0f} MB")
                return bytes(await found.download_as_bytearray())
            except InvalidToken:  # what the library makes of a 404; were it the token, the next poll would say so
                raise AdapterError("Telegram no longer has it") from None

    return await files.fetch_file(file.about, f"{bot.id}:{file.identity}", folder, LARGEST, download)
