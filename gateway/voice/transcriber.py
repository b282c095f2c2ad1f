"""Text from speech: by a program of this machine, or an endpoint of OpenAI's form.

The settings choose it, and are read each time: another model counts from the next file on. The caller limits the time,
by cancelling; all processes of a program are then gone.
"""

from pathlib import Path
from typing import BinaryIO

import msgspec

from gateway.agent.libraries import load_library
from gateway.agent.models.prices import find_price
from gateway.config.settings import ModelSettings
from gateway.config.voice_settings import TranscriptionSettings, VoiceSettings
from gateway.errors import VoiceError
from gateway.files.folders import open_received_file, read_whole
from gateway.messages.message import Attachment
from gateway.messages.transcript import Usage
from gateway.threads import run_in_thread
from gateway.voice.program import VoiceModel, expand_command
from gateway.voice.remote import call_remote

LARGEST = 25_000_000  # bytes that an endpoint is sent
LONGEST_ANSWER = 1_000_000
LONGEST_TEXT = 100_000
GONE = "its file is not there any more"


class AudioText(msgspec.Struct, frozen=True):
    """The words, and the usage of the model for them."""

    text: str
    usage: Usage | None = None


class _AudioUsage(msgspec.Struct):
    """The usage that an endpoint reports; some count seconds instead."""

    input_tokens: int = 0
    output_tokens: int = 0


class _AudioAnswer(msgspec.Struct):
    text: str
    usage: _AudioUsage | None = None


class Transcriber(VoiceModel):
    """Transcribes audio by the present settings. `folder` is the working folder of programs."""

    def _choose(self, voice: VoiceSettings) -> TranscriptionSettings:
        return voice.transcribe

    @property
    def language(self) -> str:
        return self._find_settings().voice.language

    async def transcribe(self, file: Attachment, language: str) -> AudioText:
        """Return the words in this file.

        Raises:
            VoiceError: it cannot be transcribed.
        """
        if (model := self._find_model()) is not None:
            return await _ask_endpoint(model, file, language)
        how = self._find_settings().voice.transcribe
        if not how.command:
            raise VoiceError("the recogniser has ended", is_final=True)
        (await run_in_thread(_open_audio, file.path)).close()
        command = how.command if any("{file}" in word for word in how.command) else (*how.command, "{file}")
        printed = await self._programs.run(expand_command(command, file.path, language), self._folder, reach=how)
        return AudioText(printed.decode("utf-8", "replace").strip()[:LONGEST_TEXT])


async def _ask_endpoint(model: ModelSettings, file: Attachment, language: str) -> AudioText:
    aiohttp, _ = await run_in_thread(load_library, "web")
    data = await run_in_thread(_read_audio, file.path)
    form = aiohttp.FormData()
    form.add_field("file", data, filename=file.name or Path(file.path).name, content_type=file.media_type)
    form.add_field("model", model.name)
    if language:
        form.add_field("language", language)
    return _read_answer(model, await call_remote(model, "/audio/transcriptions", LONGEST_ANSWER, data=form))


def _open_audio(path: str) -> BinaryIO:
    """Open the audio without following a link, since the agent's commands work there. Raises VoiceError if gone."""
    try:
        return open_received_file(Path(path))
    except OSError:
        raise VoiceError(GONE, is_final=True) from None


def _read_audio(path: str) -> bytes:
    """Read the audio. Raises VoiceError if it is gone or too large."""
    try:
        return read_whole(_open_audio(path), LARGEST)
    except OverflowError as error:
        found = int(error.args[0]) / 1e6
        raise VoiceError(f"it has {found:.0f} MB; {LARGEST / 1e6:.0f} MB are sent at most", is_final=True) from None


def _read_answer(model: ModelSettings, body: bytes) -> AudioText:
    try:
        answer = msgspec.json.decode(body, type=_AudioAnswer)
    except (ValueError, msgspec.ValidationError) as error:
        raise VoiceError(f"the endpoint sent what is not an answer: {error}") from None
    used, price = answer.usage or _AudioUsage(), find_price(model)
    usage = price.usage_of(used.input_tokens, used.output_tokens)
    is_unpriced = not (price.is_known and (used.input_tokens or used.output_tokens))
    usage = msgspec.structs.replace(usage, calls=1, model=model.name, unpriced=int(is_unpriced))
    return AudioText(answer.text.strip()[:LONGEST_TEXT], usage)
