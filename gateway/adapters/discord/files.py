"""The files that people send: their kind, and their download; and voice notes.

Discord shows a voice note with its length and its waveform, which the sender must provide. The library sends no such
messages: this module adds both to a request of the library's.
"""

import base64
import io
from pathlib import Path
from typing import Any

import discord
from discord.http import HTTPClient, handle_message_parameters

from gateway.adapters.discord.connection import ERRORS
from gateway.adapters.shared import files
from gateway.messages.message import Attachment, kind_of
from gateway.voice.audio_format import calculate_shape

LARGEST = 25_000_000
NOTE_NAME = "voice-message.ogg"
MOST_PIECES = 256  # of a waveform


async def fetch_file(file: discord.Attachment, folder: Path) -> Attachment | str:
    """Download a file to our store; return it, or the reason why it is missing, in words."""

    async def download() -> bytes:
        with ERRORS.translated():
            return await file.read()

    media_type = (file.content_type or "application/octet-stream").partition(";")[0].strip()
    kind = "voice" if file.is_voice_message() else kind_of(media_type)
    about = Attachment(kind, "", file.filename, media_type, file.size)
    return await files.fetch_file(about, str(file.id), folder, LARGEST, download)


class VoiceNoteFile(discord.File):
    """A voice note with its length and waveform."""

    def __init__(self, note: bytes) -> None:
        super().__init__(io.BytesIO(note), filename=NOTE_NAME)
        self._shape = calculate_shape(note, MOST_PIECES)

    def to_dict(self, index: int) -> dict[str, Any]:
        waveform = base64.b64encode(self._shape.loudness).decode()
        return {**super().to_dict(index), "duration_secs": round(self._shape.seconds, 3), "waveform": waveform}


async def send_voice_note(http: HTTPClient, channel: int, note: bytes, **how: Any) -> str:
    """Send a voice note, and return its id.

    Raises discord.HTTPException if Discord does not take it, there or at all.
    """
    flags = discord.MessageFlags(voice=True, suppress_embeds=True)
    with handle_message_parameters(file=VoiceNoteFile(note), flags=flags, **how) as params:
        sent = await http.send_message(channel, params=params)
    return str(sent["id"])
