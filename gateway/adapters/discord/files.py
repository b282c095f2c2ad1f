"""Files that people send: what kind they are, and how they are fetched."""

from pathlib import Path

import discord

from gateway.adapters.discord.connection import ERRORS
from gateway.adapters.shared import files
from gateway.messages import Attachment, kind_of

LARGEST = 25_000_000


async def fetch_file(file: discord.Attachment, folder: Path) -> Attachment | str:
    """The file in our store, or in words why it is not there."""

    async def download() -> bytes:
        with ERRORS.translated():
            return await file.read()

    media_type = (file.content_type or "application/octet-stream").partition(";")[0].strip()
    kind = "voice" if file.is_voice_message() else kind_of(media_type)
    about = Attachment(kind, "", file.filename, media_type, file.size)
    return await files.fetch_file(about, str(file.id), folder, LARGEST, download)
