"""Overheard messages of quiet chats: remembered for a while, and shown to the agent when a person calls it there.

For each chat or thread the newest messages are kept, limited by number, length and age; so a busy chat costs no more
than a silent one. They are in memory; every few seconds new ones are appended to the journal, and dropped ones are
purged: a restart finds them again, and a crash loses the last seconds at most. None of them waits for an answer.

A message that its author deletes, or whose author is forgotten, leaves both at once, and a record notifies other
gateways. Messages of a chat that is no longer quiet go at the next check.
"""

import logging
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace

import anyio
import anyio.abc
import msgspec

from gateway.chats.journal import list_keys
from gateway.engine.interface import Engine, NewRecord, Record
from gateway.errors import EngineError
from gateway.messages.message import Address, Message
from gateway.messages.pieces import MessageName, name_of
from gateway.records import records, subjects

log = logging.getLogger(__name__)

MOST = 50  # messages of a chat
MOST_CHARACTERS = 8000  # of all of these
LONGEST = 1000  # characters of one
LONGEST_AGE = records.DAY
MOST_CHATS = 200
PAUSE = 5.0  # seconds between two appends
LOOK_PAUSE = 60.0  # seconds between two checks for old messages, and for chats that are no longer quiet


class RecordedMessage(msgspec.Struct, eq=False):
    """A remembered message, received `at` this time of the journal's clock; `seq` is its record, 0: none yet."""

    message: Message
    at: float
    seq: int = 0


class HeardMessages(msgspec.Struct, eq=False):
    """Remembers overheard messages. Call `load` first; `run` writes them regularly, and `flush` at once."""

    patterns = (subjects.QUIET_SUBJECTS,)

    _engine: Engine
    _is_quiet: Callable[[Address], bool]
    _chats: dict[str, list[RecordedMessage]] = {}  # by `telegram:-2001`, the latest one at the end
    _changed: set[str] = set()
    # To be purged; of the withdrawn ones, other gateways are notified.
    _pushed_out: defaultdict[str, list[RecordedMessage]] = msgspec.field(default_factory=lambda: defaultdict(list))
    _withdrawn: defaultdict[str, list[RecordedMessage]] = msgspec.field(default_factory=lambda: defaultdict(list))
    _news: anyio.Event = msgspec.field(default_factory=anyio.Event)
    _writing: anyio.Lock = msgspec.field(default_factory=anyio.Lock)

    async def load(self) -> None:
        there = {0}  # messages that are not yet written stay
        async for record, kept in records.read_all(self._engine, self.patterns[0], records.JournalRecord):
            there.add(record.seq)
            self._learn(record.seq, kept)
        self._take_out(lambda one: one.seq not in there)

    async def take(self, record: Record) -> None:
        self._learn(record.seq, records.decode(record.data))

    def _learn(self, seq: int, kept: records.JournalRecord) -> None:
        """Take in a record. For a message that is not yet written, the one in memory is newer."""
        if isinstance(kept, records.HeardRemoval):
            self._take_out(lambda one: one.seq in kept.removed)
        elif isinstance(kept, records.HeardMessage):
            known = next((one for one in self._chats.get(kept.place, ()) if one.message.id == kept.message.id), None)
            if known is None:
                self._put(kept.place, RecordedMessage(kept.message, kept.at, seq))
            elif 0 < known.seq < seq:
                known.message, known.seq = kept.message, seq

    def add(self, message: Message) -> None:
        """Remember a message; an edit changes the remembered one, if there is one."""
        now = self._engine.clock.latest()
        chat, plain = chat_of(message), as_heard(message, now)
        kept = self._chats.get(chat, [])
        known = next((one for one in kept if one.message.id == plain.id), None)
        has_words = bool(plain.text.strip())
        if known is None and message.kind != "edit" and has_words:
            for place, gone in self._put(chat, RecordedMessage(plain, now)):
                self._pushed_out[place] += gone
                self._changed.add(place)
        elif known is not None and message.kind == "edit" and known.message.sender == message.sender:
            edited = RecordedMessage(replace(known.message, text=plain.text), known.at)
            at = kept.index(known)
            kept[at : at + 1] = [edited] if has_words else []
            (self._pushed_out if has_words else self._withdrawn)[chat].append(known)
            self._pushed_out[chat] += trim_heard(kept)
        else:
            return
        self._changed.add(chat)
        self._news.set()

    def list_before(self, message: Message) -> list[Message]:
        """List the overheard messages in this message's place that came before it."""
        now = self._engine.clock.latest()
        found = [one.message for one in self._chats.get(chat_of(message), ()) if one.at > now - LONGEST_AGE]
        before = message.sent_at or now
        return [one for one in found if one.sent_at <= before and name_of(one) != name_of(message)]

    def list_senders(self) -> set[str]:
        """Return the authors of remembered messages."""
        return {one.message.sender for kept in self._chats.values() for one in kept}

    async def delete(self, name: MessageName, by: str = "") -> bool:
        """Delete a message (`by` its author, if known); return True if it was remembered."""
        return await self._remove(lambda one: name_of(one) == name and by in ("", one.sender))

    async def forget(self, person: str) -> None:
        """Forget everything that a person (`telegram:1002`) said."""
        await self._remove(lambda one: one.sender == person)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Write and expire until cancelled."""
        task_status.started()
        try:
            while True:
                with anyio.move_on_after(LOOK_PAUSE if self._chats else None):
                    await self._news.wait()
                self._news = anyio.Event()
                self.expire()
                await self.flush()
                await anyio.sleep(PAUSE)
        finally:
            with anyio.move_on_after(PAUSE, shield=True):
                await self.flush()

    async def flush(self) -> None:
        """Make the journal hold exactly the remembered messages. A failed write is retried later."""
        async with self._writing:
            for chat in list(self._changed):
                self._changed.discard(chat)
                try:
                    await self._write(chat)
                except BaseException as error:  # also a cancellation
                    self._changed.add(chat)
                    self._news.set()
                    if not isinstance(error, EngineError):
                        raise
                    log.warning("messages of %s are not written down now: %s", chat, error)
                    return

    async def _write(self, chat: str) -> None:
        subject, new = subjects.quiet_subject_of(chat), [one for one in self._chats.get(chat, ()) if not one.seq]
        withdrawn, gone = [*self._withdrawn[chat]], [*self._withdrawn[chat], *self._pushed_out[chat]]
        puts: list[records.JournalRecord] = [
            records.HeardMessage(message=one.message, place=chat, at=one.at) for one in new
        ]
        if removed := tuple(one.seq for one in withdrawn if one.seq):
            puts.append(records.HeardRemoval(place=chat, removed=removed))
        if puts:
            made = [NewRecord(subject, records.encode(one), ttl=LONGEST_AGE) for one in puts]
            for one, seq in zip(new, await self._engine.append(*made), strict=False):
                one.seq = seq
        for first, last in list_runs(one.seq for one in gone if one.seq):
            await self._engine.purge(subject, last, after=first - 1)
        for lists in (self._withdrawn, self._pushed_out):
            lists[chat] = [one for one in lists[chat] if one not in gone]
            if not lists[chat]:
                del lists[chat]

    def _put(self, chat: str, kept: RecordedMessage) -> list[tuple[str, list[RecordedMessage]]]:
        """Insert a message by its time, and drop what exceeds the limits: of that chat, or the longest silent chat.

        Return the dropped messages by chat.
        """
        found = self._chats.pop(chat, [])
        self._chats[chat] = found
        insort(found, kept, key=lambda one: one.message.sent_at)
        gone = [(chat, trim_heard(found))]
        if len(self._chats) > MOST_CHATS:
            silent = next(iter(self._chats))
            gone.append((silent, self._chats.pop(silent)))
        return gone

    async def _remove(self, is_gone: Callable[[Message], bool]) -> bool:
        found = self._take_out(lambda one: is_gone(one.message))
        for chat, gone in found.items():
            self._withdrawn[chat] += gone
            self._changed.add(chat)
        self._news.set()  # it is written even if the caller is cancelled
        await self.flush()
        return bool(found)

    def expire(self) -> None:
        """Drop old messages, and those of chats that are no longer quiet."""
        oldest = self._engine.clock.latest() - LONGEST_AGE
        for chat, gone in self._take_out(
            lambda one: one.at <= oldest or not self._is_quiet(one.message.address)
        ).items():
            self._pushed_out[chat] += gone
            self._changed.add(chat)

    def _take_out(self, is_gone: Callable[[RecordedMessage], bool]) -> dict[str, list[RecordedMessage]]:
        """Remove the matching messages, and return them by chat."""
        found = dict[str, list[RecordedMessage]]()
        for chat, kept in list(self._chats.items()):
            if gone := [one for one in kept if is_gone(one)]:
                found[chat] = gone
                kept[:] = [one for one in kept if one not in gone]
            if not kept:
                del self._chats[chat]
        return found


def trim_heard(kept: list[RecordedMessage]) -> list[RecordedMessage]:
    """Drop the oldest messages beyond a chat's limits."""
    count = max(0, len(kept) - MOST)
    while sum(len(one.message.text) for one in kept[count:]) > MOST_CHARACTERS:
        count += 1
    gone = kept[:count]
    del kept[:count]
    return gone


def list_runs(sequences: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and last of each run of sequences."""
    runs = list[tuple[int, int]]()
    for seq in sorted(sequences):
        if runs and runs[-1][1] == seq - 1:
            runs[-1] = runs[-1][0], seq
        else:
            runs.append((seq, seq))
    return runs


def chat_of(message: Message) -> str:
    """Return the place of a message. One that starts a thread, in which it is answered, belongs to the chat."""
    at = message.address
    if at.thread_id == name_of(message).id:
        at = replace(at, thread_id="")
    return list_keys(at)[0]


def as_heard(message: Message, now: float) -> Message:
    """Return the remembered part of a message: author, place, time and text; no file, and nothing of others."""
    roles = {name: value for name, value in message.extra.items() if name == "roles"}
    said = (name_of(message).id, message.address, message.user_id, message.text[:LONGEST], message.user_name)
    return Message(*said, sent_at=message.sent_at or now, extra=roles)
