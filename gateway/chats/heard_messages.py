"""What is said to others in quiet chats: remembered for a while, and told to whoever calls the gateway there.

Of each chat or thread the newest messages are kept, by number, length and age; so a chat in which much is said costs no
more than one in which little is. They are in memory, and every few seconds what is new goes into the journal in one
append, and what was pushed out is purged: a restart finds them again, and a crash forgets the last seconds at most.
Nothing of this is a message that waits for an answer.

Who took something back, or is to be forgotten, is gone from both at once. What is remembered of a chat that is quiet no
longer goes with the next look.
"""

import logging
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, replace

import anyio
import anyio.abc

from gateway import record_subjects, records
from gateway.chats.journal import list_keys
from gateway.engine import Engine, NewRecord
from gateway.errors import EngineError
from gateway.message_pieces import MessageName, name_of
from gateway.messages import Address, Message

log = logging.getLogger(__name__)

MOST = 50  # messages of a chat
MOST_CHARACTERS = 8000  # of all of these
LONGEST = 1000  # characters of one
LONGEST_AGE = records.DAY
MOST_CHATS = 200
PAUSE = 5.0  # seconds between two appends
LOOK_PAUSE = 60.0  # seconds after which one looks for what is too old, or of no quiet chat


@dataclass(slots=True)
class RecordedMessage:
    """A message as it is remembered, heard `at` this time of the journal's clock; `seq` is its record, 0: none yet."""

    message: Message
    at: float
    seq: int = 0


class HeardMessages:
    """Remembers them. `load` first; `run` writes them down, and `flush` does it now."""

    def __init__(self, engine: Engine, is_quiet: Callable[[Address], bool]) -> None:
        self._engine = engine
        self._is_quiet = is_quiet
        self._chats: dict[str, list[RecordedMessage]] = {}  # by `telegram:-2001`, the one last heard of at the end
        self._changed: set[str] = set()
        self._news = anyio.Event()
        self._writing = anyio.Lock()

    async def load(self) -> None:
        found = records.read_all(self._engine, record_subjects.QUIET_SUBJECTS, records.HeardMessage)
        async for record, kept in found:
            self._put(kept.place, RecordedMessage(kept.message, kept.at, record.seq))

    def add(self, message: Message) -> None:
        """Remember it; an edit changes what is remembered of its message, if that is."""
        now = self._engine.clock.latest()
        chat, plain = chat_of(message), as_heard(message, now)
        kept = self._chats.get(chat, [])
        known = next((one for one in kept if one.message.id == plain.id), None)
        has_words = bool(plain.text.strip())
        if known is None and message.kind != "edit" and has_words:
            self._put(chat, RecordedMessage(plain, now))
        elif known is not None and message.kind == "edit" and known.message.sender == message.sender:
            edited = RecordedMessage(replace(known.message, text=plain.text), known.at)
            at = kept.index(known)
            kept[at : at + 1] = [edited] if has_words else []
            trim_heard(kept)
        else:
            return
        self._changed.add(chat)
        self._news.set()

    def list_before(self, message: Message) -> list[Message]:
        """What was said to others where this message stands, before it."""
        now = self._engine.clock.latest()
        found = [one.message for one in self._chats.get(chat_of(message), ()) if one.at > now - LONGEST_AGE]
        before = message.sent_at or now
        return [one for one in found if one.sent_at <= before and name_of(one) != name_of(message)]

    async def delete(self, name: MessageName, by: str = "") -> bool:
        """Its author took it back (`by`, where the network says who); whether it was remembered."""
        return await self._remove(lambda one: name_of(one) == name and by in ("", one.sender))

    async def forget(self, person: str) -> None:
        """Everything that somebody said, as `telegram:1002`."""
        await self._remove(lambda one: one.sender == person)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled."""
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
        """Have the journal hold what is remembered, and nothing else. What cannot be written now is written later."""
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
                    log.warning("what was heard in %s is not written down now: %s", chat, error)
                    return

    async def _write(self, chat: str) -> None:
        subject, kept = record_subjects.quiet_subject_of(chat), list(self._chats.get(chat, ()))
        new = [one for one in kept if not one.seq]
        puts = [records.HeardMessage(message=one.message, place=chat, at=one.at) for one in new]
        if puts:
            made = [NewRecord(subject, records.encode(one), ttl=LONGEST_AGE) for one in puts]
            for one, seq in zip(new, await self._engine.append(*made), strict=True):
                one.seq = seq
        stay = {one.seq for one in kept}
        await self._engine.purge(subject, min(stay, default=records.NEWEST) - 1)
        for record in await records.read_readable(self._engine, subject, 0, records.PAGE):
            if record.seq not in stay:
                await self._engine.purge(subject, record.seq, after=record.seq - 1)

    def _put(self, chat: str, kept: RecordedMessage) -> None:
        """Where its time puts it. What is too much of that chat goes, and of too many chats the one longest silent."""
        found = self._chats.pop(chat, [])
        self._chats[chat] = found
        insort(found, kept, key=lambda one: one.message.sent_at)
        trim_heard(found)
        if len(self._chats) > MOST_CHATS:
            silent = next(iter(self._chats))
            del self._chats[silent]
            self._changed.add(silent)

    async def _remove(self, is_gone: Callable[[Message], bool]) -> bool:
        is_found = self._keep_only(lambda one: not is_gone(one.message))
        self._news.set()  # when whoever wants it is cut off, it is written all the same
        await self.flush()
        return is_found

    def expire(self) -> None:
        """What is too old goes, and what was said in chats that are quiet no longer."""
        oldest = self._engine.clock.latest() - LONGEST_AGE
        self._keep_only(lambda one: one.at > oldest and self._is_quiet(one.message.address))

    def _keep_only(self, is_kept: Callable[[RecordedMessage], bool]) -> bool:
        """Whether anything went."""
        changed = set[str]()
        for chat, kept in list(self._chats.items()):
            stay = [one for one in kept if is_kept(one)]
            if len(stay) < len(kept):
                changed.add(chat)
                self._chats[chat] = stay
            if not stay:
                del self._chats[chat]
        self._changed |= changed
        return bool(changed)


def trim_heard(kept: list[RecordedMessage]) -> None:
    """What is too much of a chat goes, the oldest first."""
    del kept[:-MOST]
    while sum(len(one.message.text) for one in kept) > MOST_CHARACTERS:
        del kept[0]


def chat_of(message: Message) -> str:
    """Where a message stands. One that opens a thread, in which it is answered, stands in the chat."""
    at = message.address
    if at.thread_id == name_of(message).id:
        at = replace(at, thread_id="")
    return list_keys(at)[0]


def as_heard(message: Message, now: float) -> Message:
    """What is remembered of it: who said it, where and when, and the words; no file, and nothing of anybody else's."""
    roles = {name: value for name, value in message.extra.items() if name == "roles"}
    said = (name_of(message).id, message.address, message.user_id, message.text[:LONGEST], message.user_name)
    return Message(*said, sent_at=message.sent_at or now, extra=roles)
