"""Transcribe the audio of messages before a turn starts with them.

Theory of operation. A message is in the journal before its audio is transcribed. Its lane then has each audio file
transcribed, and appends the text as a record of its own (`AudioTranscription`), with the sequence of the message. Then
the lane claims the turn: the claim's messages contain the text, and a turn that runs again after a crash reads the text
from the journal.

- The lane appends a record before each try. If the process is killed in the middle, the try counts; an orderly stop
  takes the try back. After `MOST_TRIES` tries the text of the message says that the transcription failed, and the file
  is listed as usual.
- All files of a turn together have `patience` seconds. After that the lane neither waits for the transcriber nor tries
  again.
- If the person says stop during the transcription, the lane claims the turn and interrupts it at once.
- Transcription has its own slots, as many as turns have: audio that hangs blocks only its own lane.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Protocol, TypeAlias

import anyio
import msgspec

from gateway.engine.interface import Engine, NewRecord, append_until_written
from gateway.errors import VoiceError
from gateway.messages.message import Attachment, Message
from gateway.records import records, subjects
from gateway.sessions.session import Session

COMMAND_SIGNS = "/!"
MOST_TRIES = 2
TOO_LONG = "it took more than {:.0f} s"
CUT_OFF = "the gateway ended in the middle of it"
NO_WORDS = "[nothing was understood in {name}]"
FAILED = "[{name} could not be made into words: {error}]"
TRANSCRIPTION = "transcription"  # a key of a message's `extra`: the words of each file

log = logging.getLogger(__name__)


class AudioWords(msgspec.Struct, frozen=True):
    """The text of an audio file, and in `puts` the records of its cost, to append with the text.

    `authors` names the restricted hooks that changed the text.
    """

    text: str
    puts: tuple[NewRecord, ...] = ()
    authors: tuple[str, ...] = ()


class AudioListener(Protocol):
    """A transcriber that knows which messages it serves."""

    @property
    def patience(self) -> float:
        """The seconds that all files of a turn together may take."""
        ...

    def wants(self, message: Message) -> bool:
        """Return True if the message's audio should be transcribed."""
        ...

    async def listen(self, message: Message, file: Attachment, session: Session) -> AudioWords:
        """Transcribe one file of a message.

        Raises:
            VoiceError: the file cannot be transcribed.
        """
        ...


class AudioJob(msgspec.Struct, frozen=True):
    """An audio file to transcribe: number `file` of the message at sequence `on`, after `tries` earlier tries."""

    on: int
    file: int
    message: Message
    tries: int = 0


AudioState: TypeAlias = Literal["begun", "done", "failed"]
FoundMessages: TypeAlias = Sequence[tuple[int, Message]]
Transcriptions: TypeAlias = Mapping[tuple[int, int], records.AudioTranscription]


async def read_transcriptions(engine: Engine, key: str, found: FoundMessages) -> Transcriptions:
    """Return the known transcriptions of the messages, by sequence and number of the file."""
    subject = subjects.session_subject_of("audio", key)
    kept = records.read_all(engine, subject, records.AudioTranscription, found[0][0])
    return {(one.on, one.file): one async for _, one in kept}


def find_audio_jobs(known: Transcriptions, found: FoundMessages, listener: AudioListener | None) -> list[AudioJob]:
    """List the files that are still to be transcribed."""
    jobs: list[AudioJob] = []
    for on, message in found:
        files = _list_audio(message)
        if not files or listener is None or not listener.wants(message):
            continue
        for file in files:
            last = known.get((on, file))
            if last is None or last.state == "begun":
                jobs.append(AudioJob(on, file, message, last.tries if last else 0))
    return jobs


def find_stop(known: Transcriptions) -> int:
    """Return the sequence of the last message whose transcription the person stopped, or 0."""
    return max((one.on for one in known.values() if one.state == "stopped"), default=0)


def put_words(on: int, message: Message, known: Transcriptions) -> Message:
    """Return the message with the transcribed text of its audio. A spoken text is never taken as a command."""
    texts, words = [message.text] if message.text else [], []
    for file in _list_audio(message):
        last = known.get((on, file))
        if last and last.state in ("done", "failed"):
            name = message.attachments[file].name or "the audio"
            missing = FAILED.format(name=name, error=last.error) if last.error else NO_WORDS.format(name=name)
            texts.append(last.text.lstrip(COMMAND_SIGNS) or missing)
            authors = {"authors": last.authors} if last.authors else {}
            words.append({"file": file, "text": last.text, "error": last.error, **authors})
    if not words:
        return message
    return replace(message, text="\n\n".join(texts), extra={**message.extra, TRANSCRIPTION: words})


def _list_audio(message: Message) -> list[int]:
    """List the audio files to transcribe: none if the message itself carries its transcription."""
    if TRANSCRIPTION in message.extra:
        return []
    return [at for at, one in enumerate(message.attachments) if one.is_audio and not one.is_quoted]


class AudioTranscriber(msgspec.Struct, frozen=True):
    """The transcription of one session's messages, which appends the texts to the journal."""

    engine: Engine
    listener: AudioListener
    session: Session
    patience: float
    release: float

    async def transcribe(self, jobs: Sequence[AudioJob]) -> None:
        """Transcribe the files one after another, and write for each its text, or the reason for the failure."""
        left = list(jobs)
        with anyio.move_on_after(self.patience) as limit:
            while left:
                await self._transcribe(left[0])
                del left[0]
        if limit.cancelled_caught:
            for one in left:
                await self._write_failure(one, TOO_LONG.format(self.patience))

    async def stop(self, on: int) -> None:
        """Record that the person wants no answer to messages up to the sequence `on`."""
        await self._write(records.AudioTranscription(session_key=self.session.key, on=on, file=-1, state="stopped"))

    async def _transcribe(self, one: AudioJob) -> None:
        why = CUT_OFF
        for tries in range(one.tries + 1, MOST_TRIES + 1):
            await self._write(self._make(one, "begun", tries))
            try:
                words = await self.listener.listen(one.message, one.message.attachments[one.file], self.session)
            except VoiceError as error:
                why = str(error)
                if error.is_final:
                    break
            except anyio.get_cancelled_exc_class():
                with anyio.move_on_after(self.release, shield=True):
                    await self._write(self._make(one, "begun", tries - 1))
                raise
            except Exception as error:  # the listener runs hooks, and reads files of strangers
                log.exception("audio of %s cannot be made into words", self.session.key)
                why = type(error).__name__
            else:
                done = self._make(one, "done", tries, text=words.text)
                await self._write(msgspec.structs.replace(done, authors=words.authors), *words.puts)
                return
        await self._write_failure(one, why)

    async def _write_failure(self, one: AudioJob, why: str) -> None:
        log.warning("what was said in %s goes on without words: %s", self.session.key, why)
        await self._write(self._make(one, "failed", one.tries, error=why))

    def _make(
        self, one: AudioJob, state: AudioState, tries: int, text: str = "", error: str = ""
    ) -> records.AudioTranscription:
        return records.AudioTranscription(
            session_key=self.session.key,
            on=one.on,
            file=one.file,
            state=state,
            tries=tries,
            text=text,
            error=error,
            person=one.message.sender,
        )

    async def _write(self, record: records.AudioTranscription, *more: NewRecord) -> None:
        subject = subjects.session_subject_of("audio", self.session.key)
        put = NewRecord(subject, records.encode(record))
        seq, *_ = await append_until_written(partial(self.engine.append, put, *more), "a transcription")
        message = await self.engine.read(subjects.session_subject_of("in", self.session.key), record.on - 1, 1)
        if [one.seq for one in message] != [record.on]:  # the message was deleted or forgotten during the transcription
            await self.engine.purge(subject, seq, after=seq - 1)
