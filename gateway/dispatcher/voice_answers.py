"""Spoken answers, for people who want them in a chat: one voice message after the text of each answer.

Theory of operation. The outbox first sends the text as usual. The append that records the arrival of the text contains
the pending voice answer (`VoiceAnswer`, on the conversation's own subject): the words, as hooks at `message:sending`
left them. A worker for each conversation then has these answers spoken in order. It appends the end of each answer
together with the reply that carries the audio, or that says once why the audio is missing. The outbox sends that reply
like any other.

- The worker writes a record before each try. A process that is killed during a try has used it up; an orderly stop
  gives the try back. After `MOST_TRIES` the person gets only the text.
- The audio is in the conversation's folder before the worker writes the end. After a crash between the two, the next
  process finds the audio there, so that no answer is spoken, or paid for, twice.
- Both tries together may take `voice.patience`. At most `MOST_AT_ONCE` conversations are served at a time.
- A person who says `/voice off`, loses their authorization or is forgotten before the try gets no voice answer.
"""

import dataclasses
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio
import anyio.abc
from msgspec.structs import replace

from gateway.dispatcher.context import SILENT_PLATFORMS, DispatcherContext
from gateway.dispatcher.message_events import build_place_fields
from gateway.engine.interface import HELD_SECONDS, ConsumerSpec, Engine, NewRecord, Record, append_until_written
from gateway.engine.keyed_workers import KeyedWorkers, Wakeup
from gateway.errors import Conflict, VoiceError
from gateway.hooks.cause import use_cause
from gateway.lanes.audio import CUT_OFF, TOO_LONG
from gateway.messages.message import Attachment, Message, Reply
from gateway.messages.transcript import Usage
from gateway.outbox.interface import DeliveryReport
from gateway.records import records, subjects
from gateway.sessions.removal import remove_sent_files
from gateway.sessions.transitions import SPOKEN
from gateway.threads import run_in_thread
from gateway.usage.call_usage import BudgetPort, CallUsage
from gateway.usage.turn_usage import TurnUsage, UsageOrigin
from gateway.voice.answer_text import extract_words
from gateway.voice.speaker import AnswerSpeaker

MOST_TRIES = 2
MOST_AT_ONCE = 4
RELEASE = 1.0  # seconds for an orderly stop to give back a try
FAULT_PAUSE = 5.0
ENDS = ("done", "failed")
UNSPOKEN = "I could not say this aloud: {}"
LONGEST_ERROR = 300

log = logging.getLogger(__name__)


FoundVoice: TypeAlias = tuple[Record, records.VoiceAnswer]


class VoiceAnswers:
    """The voice answers of all conversations; `run` has them spoken."""

    def __init__(self, context: DispatcherContext) -> None:
        self._context = context
        self._slots = anyio.Semaphore(MOST_AT_ONCE)
        self._begun = anyio.Event()
        self._workers = KeyedWorkers(
            lambda record: subjects.token_of_subject(record.subject), lambda token: VoiceWorker(token, self)
        )

    @property
    def engine(self) -> Engine:
        return self._context.engine

    @property
    def patience(self) -> float:
        """The seconds that one answer may take; 0 without a speaker."""
        return self._context.voice.speaker.patience if self._context.voice.speaker else 0.0

    @property
    def _speaker(self) -> AnswerSpeaker | None:
        speaker = self._context.voice.speaker
        return speaker if speaker and speaker.is_on else None

    def can_reach(self, message: Message) -> bool:
        """Return True if a speaker is set up, and the author of this message can hear a spoken answer."""
        if message.kind == "internal" or message.address.platform in SILENT_PLATFORMS:
            return False
        return self._speaker is not None

    def owe(self, delivery: DeliveryReport) -> list[NewRecord]:
        """Return the pending voice answer of this reply, for the append that records the reply's arrival."""
        outbound, reply = delivery.outbound, delivery.reply
        if delivery.error or not (words := extract_words(reply.text)):
            return []
        spoken = Reply(reply.id, reply.address, words, reply_to=reply.reply_to, role=reply.role)
        kept = records.VoiceAnswer(
            session_key=outbound.session_key,
            reply=spoken,
            turn_id=outbound.turn_id,
            person=outbound.person,
            cause=outbound.cause,
        )
        self._begun.set()
        return [make_voice_put(kept)]

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Speak answers until cancelled. Without a speaker, wait for the first pending answer."""
        task_status.started()
        if self._speaker is None:
            await self._begun.wait()
        if speaker := self._context.voice.speaker:
            await run_in_thread(speaker.clear)
        consumer = await self.engine.consumer(ConsumerSpec("voice", (subjects.VOICE_SUBJECTS,), HELD_SECONDS))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._workers.keep_held, HELD_SECONDS)
            await self._workers.serve(consumer, tasks)

    async def is_wanted(self, owed: records.VoiceAnswer) -> bool:
        """Return True if the person still wants the voice answer, and is authorized in this chat."""
        who = Message("", owed.reply.address, owed.person.partition(":")[2], "")
        session = await self._context.sessions.open(owed.session_key)
        return bool(session.settings.get(SPOKEN)) and self._context.access.find_role(who) is not None

    def clean(self, error: str) -> str:
        return self._context.settings.redact(error)[:LONGEST_ERROR]

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[anyio.CancelScope]:
        """Take one of the slots, for `patience` seconds at most."""
        async with self._slots:
            with anyio.move_on_after(self.patience) as limit:
                yield limit

    async def speak(self, owed: records.VoiceAnswer) -> tuple[Attachment, Sequence[NewRecord]]:
        """Return the audio, and the records of its cost.

        Raises:
            VoiceError: the answer could not be spoken.
        """
        if (speaker := self._speaker) is None:
            raise VoiceError("no speaker is set up any more", is_final=True)
        session, at, words = await self._context.sessions.open(owed.session_key), owed.reply.address, owed.reply.text
        role, (_, _, user) = owed.reply.role or "guest", owed.person.partition(":")
        message = Message(owed.reply.reply_to, at, user, "", person=owed.person)
        fields = build_place_fields(message, role, session) | {"turn_id": owed.turn_id, "agent": ""}
        view = self._context.registry.scope(fields)
        turn = TurnUsage(UsageOrigin(owed.person, session.session_id))
        port = BudgetPort(role, view.run, view.emit, at, self._context.places.list_admins, session.key)
        usage, used = CallUsage(self._context.usage.totals, turn, port), speaker.count_usage(words)
        with use_cause(owed.cause):
            if used is None:
                return await speaker.say(words, Path(owed.path)), ()
            if refusal := await usage.ask(used.model, used.tokens):
                raise VoiceError(refusal, is_final=True)
            counted = Usage()
            try:
                spoken, counted = await speaker.say(words, Path(owed.path)), used
            finally:
                usage.count(counted, used.model, used.tokens)
        return spoken, turn.waiting

    async def find_place(self, owed: records.VoiceAnswer) -> str:
        """Return the path for the audio of a voice answer, without a suffix, in the conversation's own folder."""
        session = await self._context.sessions.open(owed.session_key)
        folder = owed.reply.address.find_folder(self._context.files.folder, session.user_id)
        return str(folder / subjects.token_of(f"{owed.reply.id}{records.VOICE_MARK}"))

    async def make_puts(self, ended: records.VoiceAnswer, reply: Reply) -> list[NewRecord]:
        """Make the records of this reply; the node that serves the network gets the reply's audio."""
        reply = await self._context.files.shared.share(reply, ended.session_key)
        now = self.engine.clock.read()
        return [records.make_reply_put(reply, ended.session_key, ended.turn_id, now, ended.cause, ended.person)]


class VoiceWorker:
    """The `KeyedWorker` that has the answers of one conversation spoken in order."""

    def __init__(self, token: str, answers: VoiceAnswers) -> None:
        self.wakeup = Wakeup()
        self.is_over = False
        self._subject = subjects.session_subject_of_token("voice", token)
        self._answers = answers
        self._scope = anyio.CancelScope()

    def finish(self) -> None:
        self._scope.cancel()

    async def run(self) -> None:
        with self._scope:
            while not self.is_over:
                self.wakeup.listen()
                try:
                    owed = self._find_first(await self._read())
                    if owed is None:
                        self.is_over = not self.wakeup.has_news
                    else:
                        await self._answer(owed)
                except Exception:  # an ill journal, or a bug of ours: the answer is still pending, and is retried
                    log.exception("an answer that is to be spoken waits %.0f s", FAULT_PAUSE)
                    await anyio.sleep(FAULT_PAUSE)

    async def _read(self) -> list[FoundVoice]:
        return [one async for one in records.read_all(self._answers.engine, self._subject, records.VoiceAnswer)]

    def _find_first(self, found: Sequence[FoundVoice]) -> records.VoiceAnswer | None:
        """Return the first answer that is pending by its last record."""
        last = {one.reply.id: one for _, one in found}
        return next((one for one in last.values() if one.state not in ENDS), None)

    async def _answer(self, owed: records.VoiceAnswer) -> None:
        if not await self._answers.is_wanted(owed):
            await self._end(replace(owed, state="done"))
            return
        owed, why = replace(owed, path=owed.path or await self._answers.find_place(owed)), CUT_OFF
        async with self._answers.slot() as limit:
            for tries in range(owed.tries + 1, MOST_TRIES + 1):
                await self._write(replace(owed, state="begun", tries=tries))
                try:
                    spoken, counted = await self._answers.speak(owed)
                except VoiceError as error:
                    why = self._answers.clean(str(error))
                    if error.is_final:
                        break
                except anyio.get_cancelled_exc_class():
                    with anyio.move_on_after(RELEASE, shield=True):
                        await self._write(replace(owed, state="begun", tries=tries - 1))
                    raise
                except Exception as error:  # `speak` runs hooks and foreign programs
                    log.exception("an answer in %s cannot be spoken", owed.session_key)
                    why = type(error).__name__
                else:
                    with anyio.CancelScope(shield=True):
                        await self._end(replace(owed, state="done", tries=tries), spoken, counted)
                    return
        if limit.cancelled_caught:
            why = TOO_LONG.format(self._answers.patience)
        log.warning("an answer in %s is not spoken: %s", owed.session_key, why)
        await self._end(replace(owed, state="failed", error=why))

    async def _write(self, kept: records.VoiceAnswer) -> None:
        put = make_voice_put(kept)
        await append_until_written(partial(self._answers.engine.append, put), "an answer that is to be spoken")

    async def _end(
        self, ended: records.VoiceAnswer, spoken: Attachment | None = None, counted: Sequence[NewRecord] = ()
    ) -> None:
        """Write the end of an answer, with its reply. If the answer was forgotten, write nothing."""
        while True:
            found = await self._read()
            if not any(one.reply.id == ended.reply.id for _, one in found):
                await remove_sent_files(self._answers.engine, ended)
                return
            was_said = any(one.state == "failed" for _, one in found)
            reply = self._make_reply(ended, spoken, was_said=was_said)
            replies = await self._answers.make_puts(ended, reply) if reply else ()
            put = replace(make_voice_put(ended), expect=found[-1][0].seq)
            try:
                await append_until_written(partial(self._answers.engine.append, *counted, put, *replies), "spoken")
                break
            except Conflict:  # another answer was added
                continue
        for record, one in found:
            if one.reply.id == ended.reply.id or one.state in ENDS:
                await records.purge_record(self._answers.engine, record)

    def _make_reply(self, ended: records.VoiceAnswer, spoken: Attachment | None, *, was_said: bool) -> Reply | None:
        """Make the reply with the audio, or with the reason why the audio is missing, if no reason was sent yet."""
        reply = dataclasses.replace(ended.reply, id=f"{ended.reply.id}{records.VOICE_MARK}", text="")
        if spoken is not None:
            return dataclasses.replace(reply, attachments=(spoken,))
        is_told = ended.error and not was_said
        return dataclasses.replace(reply, text=UNSPOKEN.format(ended.error), silent=True) if is_told else None


def make_voice_put(kept: records.VoiceAnswer) -> NewRecord:
    subject = subjects.session_subject_of("voice", kept.session_key)
    return NewRecord(subject, records.encode(kept), ttl=records.TRAFFIC_TTL)
