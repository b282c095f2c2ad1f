"""The terminal as a chat network: its people use the control socket, and its outgoing messages are the journal.

A reply counts as delivered once it is in the journal: a connected terminal shows it at once, a later one finds it in
the session. So a terminal is always reachable, and closing one loses nothing.
"""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unicodedata import combining, east_asian_width

import anyio
import msgspec
from msgspec.structs import replace

from gateway.access.access_control import TERMINAL
from gateway.adapters.shared.adapter import ReceiveMessage
from gateway.adapters.verbs import SayRequest, ShowRequest
from gateway.config.settings import SessionSettings
from gateway.dispatcher.attachments import display_name_of
from gateway.dispatcher.commands import parse_command
from gateway.engine.failure_watch import FailureWatch
from gateway.engine.interface import Engine, Record
from gateway.errors import GatewayError
from gateway.lanes.turn import reply_id_of
from gateway.messages.files import HomeFiles, find_reply_files
from gateway.messages.message import Address, Message, Receipt, Reply
from gateway.questions.terminal import TerminalQuestions
from gateway.records import records, subjects
from gateway.sessions.keys import session_key_of
from gateway.verbs import Notify

PLATFORM = TERMINAL
OWNER = "owner"
ROW_WIDTH = 76  # columns of a literal text; a terminal has 80


class SayResult(msgspec.Struct, frozen=True):
    """The result of a message. The status `unsaid` means that it was not taken, since a question comes first."""

    session: str
    reply: str
    status: str
    turn_id: str = ""
    error: str = ""


class SayQueue(msgspec.Struct, eq=False):
    """The order in which the texts of a session enter the journal.

    With servers, a later text could otherwise overtake an earlier one.
    """

    _last: dict[str, anyio.Event] = {}

    @contextmanager
    def join(self, typed: SayRequest) -> Iterator[anyio.Event | None]:
        """Yield an event, set when the journal has the text before this one; None for the first, and for a command."""
        if parse_command(typed.text):
            yield None
            return
        earlier, taken = self._last.get(typed.session), anyio.Event()
        self._last[typed.session] = taken
        try:
            yield earlier
        finally:
            taken.set()
            if self._last.get(typed.session) is taken:
                del self._last[typed.session]


class Terminal(msgspec.Struct, eq=False):
    """The terminal: it takes a person's message, and shows the records of its session until the answer is complete."""

    _engine: Engine
    _receive: ReceiveMessage
    _questions: TerminalQuestions
    _files: HomeFiles
    _is_command: Callable[[Message], bool]
    _failure: FailureWatch
    _queue: SayQueue = msgspec.field(default_factory=SayQueue)
    _shown: set[str] = set()  # questions shown since the start, to any terminal

    async def show(self, wanted: ShowRequest, notify: Notify) -> SayResult:
        """Show the open questions of a session; a control verb."""
        message = message_of(SayRequest("", wanted.session), self._engine.clock.latest())
        asked = await self._questions.list_open(message, find_key(message))
        return await self._show_questions(asked, wanted.session, "ok", notify)

    async def _show_questions(self, asked: list[Reply], session: str, status: str, notify: Notify) -> SayResult:
        for reply in asked:
            self._note_shown(reply)
            await notify("reply", describe_reply(reply, reply.id.partition(":")[0]))
        return SayResult(session, "\n\n".join(map(show_reply, asked)), status)

    async def say(self, typed: SayRequest, notify: Notify) -> SayResult:
        """Take one message, stream its answer as notifications, and return the outcome; a control verb."""
        message = message_of(typed, self._engine.clock.latest())
        if typed.shown is not None and not self._is_command(message):
            before = self._shown if typed.is_single else ()
            if asked := await self._questions.find_unseen(message, find_key(message), typed.shown, before):
                return await self._show_questions(asked, typed.session, "unsaid", notify)
        with self._failure.watching():
            with self._queue.join(typed) as earlier:
                heard = await self._engine.tail(*subjects_of(message))  # before sending, so that nothing is missed
                if earlier:
                    await earlier.wait()
                receipt = await self._receive(message)
            if receipt.settled is not None:
                return SayResult(typed.session, receipt.settled, "command")
            if receipt.seq:
                return await self._make_watcher(receipt, message, notify).until_done(heard)
            receipt = await self._said_before(message, receipt.session_key)
            watcher = self._make_watcher(receipt, message, notify)
            return await watcher.ended() or await watcher.until_done(heard)

    def _note_shown(self, reply: Reply) -> None:
        if reply.buttons:
            self._shown.add(reply.id)

    def _make_watcher(self, receipt: Receipt, message: Message, notify: Notify) -> "TerminalWatcher":
        return TerminalWatcher(self._engine, receipt, message, notify, self._note_shown, self._files)

    async def _said_before(self, message: Message, key: str) -> Receipt:
        """Return the receipt of a message that is in the journal already."""
        where = subjects.session_subject_of("in", key)
        async for record, kept in records.read_all(self._engine, where, records.InboundMessage):
            if kept.message.id == message.id:
                return Receipt(key, record.seq)
        raise GatewayError(f"the message {message.id} was said before, and is no longer in the journal")


def describe_reply(reply: Reply, turn: str) -> dict[str, Any]:
    """Describe a reply for a screen. `is_literal`: a person decides by this text, so no Markdown is rendered."""
    is_literal = bool(reply.literals or reply.buttons)
    return {"id": reply.id, "turn_id": turn, "text": show_reply(reply), "is_literal": is_literal}


def show_reply(reply: Reply) -> str:
    """Return the text on the screen.

    Files are shown by their paths, and the lines of a question's texts behind bars, unlike our own lines.
    """
    lines = []
    for one in reply.literals:
        lines += [one.words, *(row for line in one.text.split("\n") if one.text for row in split_literal(line))]
    files = (f"[file {display_name_of(one.name)}: {one.path}]" for one in reply.attachments)
    return "\n".join(["\n".join(lines) or reply.text, *files]).lstrip("\n")


def split_literal(line: str) -> Iterator[str]:
    """Yield the rows of one line; the mark at the edge shows if the line begins or continues there."""
    row, width, edge = "", 0, "| "
    for sign in line:
        room = 0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1
        if width + room > ROW_WIDTH:
            yield f"{edge}{row}"
            row, width, edge = "", 0, ": "
        row, width = row + sign, width + room
    yield f"{edge}{row}"


class TerminalWatcher(msgspec.Struct, eq=False):
    """The watcher of one message, which shows the answer as it comes."""

    _engine: Engine
    _receipt: Receipt
    _message: Message
    _notify: Notify
    _note_shown: Callable[[Reply], None]
    _files: HomeFiles
    _after: int = 0  # the last answered question: only replies after it and after the message are shown
    _shown: dict[str, records.OwedReply] = {}

    async def ended(self) -> SayResult | None:
        """Return the result of a message that was answered before; None if it was not."""
        where = subjects.session_subject_of("turn", self._receipt.session_key)
        async for _, kept in records.read_all(self._engine, where, records.TurnEnded, self._receipt.seq):
            if kept.upto >= self._receipt.seq:
                return await self._said(kept.status, kept.turn_id, kept.error)
        return None

    async def until_done(self, heard: AsyncIterator[Record]) -> SayResult:
        async for record in heard:
            if record.seq == 0:
                delta = msgspec.json.decode(record.data)
                if reply_id_of(delta["turn_id"]) not in self._shown:  # else it is a late piece
                    await self._notify("delta", delta)
                continue
            match records.decode_readable(record.data):
                case records.OwedReply() as out:
                    await self._show(out)
                case records.QuestionAnswered():  # the question itself was shown before
                    self._after = max(self._after, record.seq)
                case records.QuestionsAsked() as asked:
                    return await self._said("waiting", asked.turn_id, "")
                case records.TurnEnded(upto=upto) as done if upto >= self._receipt.seq:
                    return await self._said(done.status, done.turn_id, done.error)
        raise GatewayError("the gateway stops; the message is kept, and answered when it runs again")

    async def _said(self, status: str, turn_id: str, error: str) -> SayResult:
        """Make the result; replies that were not received yet are read from the journal.

        An end and its replies are one append, in any order.
        """
        pattern = subjects.reply_pattern_of_session(self._receipt.session_key)
        after = max(self._after, self._receipt.seq)
        async for _, kept in records.read_all(self._engine, pattern, records.OwedReply, after, fresh=False):
            await self._show(kept)
        texts = [show_reply(out.reply) for out in self._shown.values() if out.turn_id == turn_id]
        return SayResult(self._message.session, "\n\n".join(texts), status, turn_id, error)

    async def _show(self, out: records.OwedReply) -> None:
        is_anothers = not out.turn_id and out.reply.reply_to not in ("", self._message.id)  # for example a command's
        if out.reply.id not in self._shown and not is_anothers:
            self._shown[out.reply.id] = out = replace(out, reply=await find_reply_files(self._files, out.reply))
            self._note_shown(out.reply)
            await self._notify("reply", describe_reply(out.reply, out.turn_id))


def message_of(typed: SayRequest, now: float) -> Message:
    address = Address(PLATFORM, typed.session)
    return Message(typed.id or uuid.uuid4().hex, address, OWNER, typed.text, session=typed.session, sent_at=now)


def find_key(message: Message) -> str:
    """Return the key of the session that the message names."""
    return session_key_of(message, SessionSettings())


def subjects_of(message: Message) -> tuple[str, ...]:
    """Return the subjects of the journal for the session of a message."""
    key = find_key(message)
    return (
        subjects.session_subject_of("turn", key),
        subjects.reply_pattern_of_session(key),
        subjects.delta_subject_of(key),
    )
