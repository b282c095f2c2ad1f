"""What people say instead of writing it: the words of their audio, before a turn is made of the messages.

Theory of operation. A message is in the journal before anybody listens to it. Its lane then has each of its audio files
made into words, and writes them down as a record of their own (`AudioTranscription`), under the sequence of the
message. Only then the turn is claimed, so whatever the claim says of its messages has the words in it, and a turn that
begins anew after a crash reads them where they are.

- A record stands before each try. A process that is killed in the middle of it has used one up, an orderly stop gives
  it back. After `MOST_TRIES` the message goes on without words: its text says so, and the file is named as ever.
- All files of a turn together have `patience` seconds. Who listens for longer is not waited for, nor tried again.
- A person who says stop meanwhile wants no answer: the turn is claimed as one that is interrupted before it begins.
- It takes no slot of a turn, but one of as many others: audio that hangs holds up its own lane alone.
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
TRANSCRIPTION = "transcription"  # in a message's `extra`: the words, file by file

log = logging.getLogger(__name__)


class AudioWords(msgspec.Struct, frozen=True):
    """The words, and what is to be written with them: what they cost. `authors`: restricted hooks that changed them."""

    text: str
    puts: tuple[NewRecord, ...] = ()
    authors: tuple[str, ...] = ()


class AudioListener(Protocol):
    """Who makes words of audio, and knows whose."""

    @property
    def patience(self) -> float:
        """Seconds that all files of a turn together may take."""
        ...

    def wants(self, message: Message) -> bool:
        """Is it to be listened to what came with this message?"""
        ...

    async def listen(self, message: Message, file: Attachment, session: Session) -> AudioWords:
        """The words in one file of it.

        Raises:
            VoiceError: there are none to be had.
        """
        ...


class AudioJob(msgspec.Struct, frozen=True):
    """File `file` of the message at `on`, after so many tries."""

    on: int
    file: int
    message: Message
    tries: int = 0


AudioState: TypeAlias = Literal["begun", "done", "failed"]
FoundMessages: TypeAlias = Sequence[tuple[int, Message]]
Transcriptions: TypeAlias = Mapping[tuple[int, int], records.AudioTranscription]


async def read_transcriptions(engine: Engine, key: str, found: FoundMessages) -> Transcriptions:
    """What is known of the audio of these messages, by sequence and file."""
    subject = subjects.session_subject_of("audio", key)
    kept = records.read_all(engine, subject, records.AudioTranscription, found[0][0])
    return {(one.on, one.file): one async for _, one in kept}


def find_audio_jobs(known: Transcriptions, found: FoundMessages, listener: AudioListener | None) -> list[AudioJob]:
    """What somebody has yet to listen to."""
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
    """Up to which message nobody wants an answer any more."""
    return max((one.on for one in known.values() if one.state == "stopped"), default=0)


def put_words(on: int, message: Message, known: Transcriptions) -> Message:
    """The message with the words of its audio. What is said is no command, whatever it sounds like."""
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
    """Which of its files are audio that nobody has listened to: one that is taken up again may bring its words."""
    if TRANSCRIPTION in message.extra:
        return []
    return [at for at, one in enumerate(message.attachments) if one.is_audio and not one.is_quoted]


class AudioTranscriber(msgspec.Struct, frozen=True):
    """Has the audio of one session's messages made into words, and writes them down."""

    engine: Engine
    listener: AudioListener
    session: Session
    patience: float
    release: float

    async def transcribe(self, jobs: Sequence[AudioJob]) -> None:
        """All of these, one after another; afterwards each has words, or the reason why there are none."""
        left = list(jobs)
        with anyio.move_on_after(self.patience) as limit:
            while left:
                await self._transcribe(left[0])
                del left[0]
        if limit.cancelled_caught:
            for one in left:
                await self._write_failure(one, TOO_LONG.format(self.patience))

    async def stop(self, on: int) -> None:
        """Nobody wants an answer to what came up to there."""
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
            except Exception as error:  # hooks have their say in it, and files that others wrote
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
        if [one.seq for one in message] != [record.on]:  # while somebody listened it was taken back, or forgotten
            await self.engine.purge(subject, seq, after=seq - 1)
