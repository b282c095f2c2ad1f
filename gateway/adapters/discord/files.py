"""Files that people send: what kind they are, and how they are fetched."""

from pathlib import Path
from typing import Any

import discord

from gateway.adapters.discord.connection import ERRORS
from gateway.adapters.shared import files
from gateway.messages import Attachment, AttachmentKind

LARGEST = 25_000_000


async def fetch_file(file: discord.Attachment, folder: Path) -> Attachment | str:
    """The file in our store, or in words why it is not there."""

    async def download() -> bytes:
        with ERRORS.translated():
            return await file.read()

    about = Attachment(kind_of(file), "", file.filename, media_type_of(file), file.size)
    return await files.fetch_file(about, str(file.id), folder, LARGEST, download)


def kind_of(file: discord.Attachment) -> AttachmentKind:
    if file.is_voice_message():
        return "voice"
    kinds: dict[str, Any] = {"image": "image", "audio": "audio", "video": "video"}
    kind: AttachmentKind = kinds.get(media_type_of(file).partition("/")[0], "document")
    return kind


def media_type_of(file: discord.Attachment) -> str:
    return (file.content_type or "application/octet-stream").partition(";")[0].strip()
