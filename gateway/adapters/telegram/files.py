"""Files that people send: which a message has, and how they are fetched, within a size and a time."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
from telegram import Bot, Message
from telegram.error import InvalidToken, TelegramError

from gateway.adapters.shared.incoming_files import display_name_of, save_file
from gateway.adapters.telegram.connection import as_adapter_error
from gateway.messages import Attachment

log = logging.getLogger(__name__)

LARGEST = 20_000_000  # what Telegram hands out to bots
PATIENCE = 60.0

Kind: TypeAlias = Literal["image", "audio", "voice", "video", "document"]


@dataclass(frozen=True, slots=True)
class TelegramFile:
    """A file that lies at Telegram."""

    kind: Kind
    file_id: str
    identity: str
    name: str
    media_type: str
    size: int


def file_of(message: Message) -> TelegramFile | None:
    """The file of a message; of a picture the largest that there is."""
    if message.photo:
        best = message.photo[-1]
        return TelegramFile("image", best.file_id, best.file_unique_id, "photo.jpg", "image/jpeg", best.file_size or 0)
    fields: tuple[tuple[Kind, str, str, str], ...] = (
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
            return TelegramFile(kind, file.file_id, file.file_unique_id, named, typed, file.file_size or 0)
    return None


async def fetch_file(bot: Bot, file: TelegramFile, folder: Path) -> Attachment | str:
    """The file in our store, or in words why it is not there: a message is not lost because its file is."""
    name = display_name_of(file.name)
    if file.size > LARGEST:
        return f"[the file {name} has {file.size / 1e6:.0f} MB; Telegram gives a bot {LARGEST / 1e6:.0f} MB at most]"
    try:
        with anyio.fail_after(PATIENCE):
            found = await bot.get_file(file.file_id)
            data = bytes(await found.download_as_bytearray())
        about = Attachment(file.kind, "", file.name, file.media_type)
        return await save_file(folder, f"{bot.id}:{file.identity}", data, about)
    except TimeoutError:
        why = f"it took more than {PATIENCE:.0f} s"
    except InvalidToken:  # what the library makes of a 404; were it the token, the next poll would say so
        why = "Telegram no longer has it"
    except TelegramError as error:
        why = str(as_adapter_error(error))
    except OSError as error:
        why = f"it cannot be kept: {error.strerror}"
    log.warning("the file %s cannot be fetched: %s", name, why)
    return f"[the file {name} could not be fetched: {why}]"
