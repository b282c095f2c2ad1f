"""Speech from text: by a program of this machine, or an endpoint of OpenAI's form, as a voice note if possible.

Networks want Opus in Ogg for a voice note. Other forms are converted by `opusenc` or `ffmpeg`, if one of them is
installed; otherwise the file is sent as it is. The settings choose the speaker, and are read each time. The caller
limits the time, by cancelling; all processes of a program are then gone.
"""

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import anyio
from msgspec.structs import replace

from gateway.agent.models.prices import find_price
from gateway.config.voice_settings import SpeakerSettings, VoiceSettings
from gateway.errors import VoiceError
from gateway.files.folders import read_whole, write_file
from gateway.messages.message import Attachment
from gateway.messages.transcript import Usage
from gateway.threads import run_in_thread
from gateway.voice.audio_format import NOTE_TYPE, SUFFIXES, infer_media_type
from gateway.voice.program import VoiceModel, expand_command
from gateway.voice.remote import call_remote

LARGEST = 25_000_000  # bytes of what was spoken
NAME = "answer"
OPUSENC = ("opusenc", "--quiet", "--ignorelength", "--bitrate", "32", "-", "-")
FFMPEG = (
    *("ffmpeg", "-nostdin", "-v", "error", "-i", "pipe:0", "-vn"),
    *("-c:a", "libopus", "-b:a", "32k", "-f", "ogg", "pipe:1"),
)
CONVERTERS = {"audio/wav": (OPUSENC, FFMPEG), "audio/flac": (OPUSENC, FFMPEG)}
OTHERS = (FFMPEG,)  # of what else there is


class AnswerSpeaker(VoiceModel):
    """The speaker of the present settings. `folder` is for the programs, and temporary."""

    def _choose(self, voice: VoiceSettings) -> SpeakerSettings:
        return voice.speak

    def count_usage(self, words: str) -> Usage | None:
        """Estimate the model's usage for these words. Endpoints do not report it: characters count as input tokens."""
        if (model := self._find_model()) is None:
            return None
        return replace(find_price(model).usage_of(len(words), 0), calls=1, model=model.name, estimated=1)

    def clear(self) -> None:
        """Remove the unfinished files of a gateway that was killed."""
        with suppress(OSError):
            shutil.rmtree(self._folder)

    async def say(self, words: str, place: Path) -> Attachment:
        """Speak these words into a file at `place` with the suffix of its format; an existing file is reused.

        Raises:
            VoiceError: the words could not be spoken.
        """
        if known := await run_in_thread(_find_spoken, place):
            return known
        data = await self._speak(words)
        if len(data) > LARGEST:
            raise VoiceError(f"what was spoken has more than {LARGEST / 1e6:.0f} MB", is_final=True)
        if not (kind := infer_media_type(data)):
            raise VoiceError("what came is not audio that is known here", is_final=True)
        if kind != NOTE_TYPE and (note := await self._convert(kind, data)):
            kind, data = NOTE_TYPE, note
        path = place.with_suffix(SUFFIXES[kind])
        try:
            await run_in_thread(write_file, path, data)
        except OSError as error:
            raise VoiceError(f"what was spoken cannot be kept: {error.strerror}") from None
        return _make_attachment(path, len(data))

    async def _speak(self, words: str) -> bytes:
        voice = self._find_settings().voice
        if (model := self._find_model()) is not None:
            asked = {"model": model.name, "input": words, "voice": voice.speak.voice, "response_format": "opus"}
            return await call_remote(model, "/audio/speech", LARGEST, json=asked)
        if not voice.speak.command:
            raise VoiceError("speech has ended", is_final=True)
        folder = await run_in_thread(self._make_folder)
        try:
            file = folder / f"{NAME}.wav"
            command = expand_command(voice.speak.command, str(file), voice.language)
            printed = await self._programs.run(command, self._folder.parent, words.encode(), voice.speak, str(folder))
            is_file = any("{file}" in one for one in voice.speak.command)
            return await run_in_thread(_read_file, file) if is_file else printed
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_thread(lambda: shutil.rmtree(folder, ignore_errors=True))

    async def _convert(self, kind: str, data: bytes) -> bytes:
        """Convert the audio into a voice note; empty if no converter is installed."""
        for command in CONVERTERS.get(kind, OTHERS):
            if self._programs.find(command[0]):
                note = await self._programs.run(command, self._folder.parent, data)
                return note if infer_media_type(note) == NOTE_TYPE else b""
        return b""

    def _make_folder(self) -> Path:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=self._folder))


def _read_file(path: Path) -> bytes:
    """Read the program's file. Raises VoiceError if it is missing or too large."""
    try:
        return read_whole(path.open("rb"), LARGEST)
    except OSError:
        raise VoiceError("the program wrote no audio into its file") from None
    except OverflowError:
        raise VoiceError(f"what was spoken has more than {LARGEST / 1e6:.0f} MB", is_final=True) from None


def _find_spoken(place: Path) -> Attachment | None:
    """Find the audio that was made before the gateway was killed, so that it is not paid for twice."""
    found = (place.with_suffix(suffix) for suffix in SUFFIXES.values())
    for path in found:
        with suppress(OSError):
            if not path.is_symlink() and path.is_file():
                return _make_attachment(path, path.stat().st_size)
    return None


def _make_attachment(path: Path, size: int) -> Attachment:
    kind = next(kind for kind, suffix in SUFFIXES.items() if suffix == path.suffix)
    name = f"{NAME}{path.suffix}"
    return Attachment("voice" if kind == NOTE_TYPE else "audio", str(path), name, kind, size)
