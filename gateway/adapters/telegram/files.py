"""The files that people send: the ones that a message has, and their download."""

from pathlib import Path

import msgspec
from telegram import Bot, Message
from telegram.error import InvalidToken

from gateway.adapters.shared import files
from gateway.adapters.telegram.connection import ERRORS
from gateway.errors import AdapterError
from gateway.messages.message import Attachment, AttachmentKind

LARGEST = 20_000_000  # the limit for downloads by bots


class TelegramFile(msgspec.Struct, frozen=True):
    """A file on Telegram's servers."""

    about: Attachment
    file_id: str
    identity: str


def file_of(message: Message) -> TelegramFile | None:
    """Return the file of a message; of a picture the largest size."""
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
    """Download a file to our store; return it, or the reason why it is missing, in words."""

    async def download() -> bytes:
        with ERRORS.translated():
            try:
                found = await bot.get_file(file.file_id)
                if (found.file_size or 0) > LARGEST:  # the message may lack the size
                    raise AdapterError(f"it has {(found.file_size or 0) / 1e6:.0f} MB")
                return bytes(await found.download_as_bytearray())
            except InvalidToken:  # the library's error for a 404; if the token were wrong, the next poll would say so
                raise AdapterError("Telegram no longer has it") from None

    return await files.fetch_file(file.about, f"{bot.id}:{file.identity}", folder, LARGEST, download)
