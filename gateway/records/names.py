"""The names of people and chats, as their networks say them: for people to read, and for nothing else.

No right follows from a name, since everybody chooses their own: access, budgets and verbs know ids alone. A name is one
line of visible signs. If two share one, or if it could pass for an id, the answer says so, and the id is shown.

A message costs a look at a set. A new or changed name is appended a moment later, for many at once, and a name that
stays is appended again once a day while its network says it. So a name that is silent for long leaves the journal.
"""

import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import anyio
import anyio.abc
import msgspec
from msgspec.structs import replace

from gateway.engine.interface import Engine, NewRecord, Record, append_in_parts
from gateway.errors import EngineError
from gateway.logs.signs import as_shown_name
from gateway.messages.message import SHARED_CHATS, Message, name_of_account
from gateway.messages.roles import Role, is_admin
from gateway.records import records, subjects
from gateway.records.records import KnownName

MOST_NAMES = 20_000  # of people, and as many of chats
NAME_TTL = 400 * records.DAY
AGAIN = records.DAY / 2  # a name that the network says again is written again after that
PAUSE = 5.0  # seconds between two appends
LIST_PATIENCE = 20.0  # seconds after a start
PRIVATE = "web"  # the platform of the page, on which a person with a link is `telegram:1002`
OUR_WORDS = frozenset({"owner", "terminal", "somebody"})


def fold_name(name: str) -> str:
    """Return the form in which names are compared."""
    return unicodedata.normalize("NFKC", name).casefold().replace(" ", "").lstrip("#@")


class NameTable(msgspec.Struct, eq=False):
    """The names of people, or of chats, by id; the ones that were said last are at the end."""

    known: dict[str, KnownName] = {}
    _folded: dict[str, str] = {}
    _counts: Counter[str] = msgspec.field(default_factory=Counter)

    def put(self, kept: KnownName) -> KnownName | None:
        """Take in a name; return the one that has to leave, since there are too many."""
        self.drop(kept.of)
        folded = self._folded[kept.of] = fold_name(kept.name)
        self.known[kept.of] = kept
        self._counts[folded] += 1
        return self.drop(next(iter(self.known))) if len(self.known) > MOST_NAMES else None

    def drop(self, identity: str) -> KnownName | None:
        """Remove a name."""
        if gone := self.known.pop(identity, None):
            folded = self._folded.pop(identity)
            self._counts[folded] -= 1
            if not self._counts[folded]:
                del self._counts[folded]
        return gone

    def find(self, identity: str) -> str:
        """Return the name with this id; "" if none is known."""
        known = self.known.get(identity)
        return known.name if known else ""

    def describe(self, identity: str) -> str:
        """Return the name with this id behind it, for a text that has to tell both; the id alone without a name."""
        name = self.find(identity)
        return f"{name} ({identity})" if name else identity

    def is_shared(self, identity: str) -> bool:
        """Return True if the name alone does not say who it is.

        Another has it too, or it looks like an id, or like a word of ours.
        """
        folded = self._folded.get(identity, "")
        return self._counts[folded] > 1 or ":" in folded or folded.isdecimal() or folded in OUR_WORDS

    def search(self, text: str) -> frozenset[str]:
        """Return the ids whose name has this text."""
        wanted = fold_name(text)
        return frozenset(identity for identity, folded in self._folded.items() if wanted in folded)


class KnownNames:
    """The tables of people and chats, which follow the journal. Call `load` first; `run` writes regularly."""

    patterns = (subjects.NAME_SUBJECTS,)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.people, self.chats = NameTable(), NameTable()
        self._said: set[tuple[Any, ...]] = set()  # what the networks said lately
        self._unwritten: dict[str, KnownName] = {}  # by subject
        self._gone: dict[str, None] = {}  # subjects of names that had to leave
        self._seqs: dict[str, int] = {}
        self._news = anyio.Event()
        self._writing = anyio.Lock()
        self._listed = defaultdict[str, anyio.Event](anyio.Event)  # by bot: set when its network has listed its chats
        self._began = time.monotonic()

    async def load(self) -> None:
        self.people, self.chats, self._seqs = NameTable(), NameTable(), {}
        async for record, kept in records.read_all(self._engine, self.patterns[0], KnownName):
            self._take_in(record, kept)
        for kept in self._unwritten.values():
            self._put(kept)

    async def take(self, record: Record) -> None:
        kept = records.decode(record.data)
        if isinstance(kept, KnownName):
            self._take_in(record, kept)

    def note(self, message: Message, role: Role) -> None:
        """Note the names in a message of a person with access."""
        at, chat = message.address, str(message.extra.get("chat_name") or "")
        said = (at, message.user_id, message.user_name, chat, role, message.sent_at // records.DAY)
        if said in self._said:
            return
        if len(self._said) >= MOST_NAMES:
            self._said.clear()
        self._said.add(said)
        self.learn(KnownName(of=message.sender, name=message.user_name))
        if chat and at.chat_type != "dm" and "parent_chat" not in message.extra:  # otherwise a thread has that name
            within, trusted = str(message.extra.get("guild_name") or ""), is_admin(role)
            name = f"{name_of_account(at.platform, at.account)}:{at.chat_id}"
            self.learn(KnownName(of=name, name=chat, is_chat=True, within=within, is_trusted=trusted))

    def learn(self, said: KnownName) -> None:
        """Take in a name that a network says; it is written if it is new, has changed, or is old."""
        now, known = self._engine.clock.latest(), self._table_of(said).known.get(said.of)
        trusted = said.is_trusted or (known is not None and known.is_trusted)
        kept = replace(
            said, name=as_shown_name(said.name), within=as_shown_name(said.within), is_trusted=trusted, at=now
        )
        if not kept.name or kept.name == kept.of.partition(":")[2]:
            return
        if known and replace(kept, at=known.at) == known and abs(now - known.at) < AGAIN:
            return
        self._put(kept)
        self._unwritten[_subject_of(kept)] = kept
        self._news.set()

    def learn_chats(self, bot: str, listed: Iterable[KnownName]) -> None:
        """Take in the whole list of a bot's chats; the name of a chat that is not there any more goes."""
        names = {one.of: one for one in listed}
        for gone in [one for one in self.chats.known if one.rpartition(":")[0] == bot and one not in names]:
            self.chats.drop(gone)
            subject = subjects.name_subject_of(gone, is_chat=True)
            self._unwritten.pop(subject, None)
            self._gone[subject] = None
            self._news.set()
        for said in names.values():
            self.learn(said)
        self._listed[bot].set()

    async def wait_for_list(self, bot: str) -> None:
        """Wait, only shortly after a start, until the network has listed the chats of this bot."""
        with anyio.move_on_after(max(0.0, self._began + LIST_PATIENCE - time.monotonic())):
            await self._listed[bot].wait()

    async def forget(self, person: str) -> None:
        """Forget the name of a person, `telegram:1002`."""
        subject = subjects.name_subject_of(person, is_chat=False)
        async with self._writing:
            self._said.clear()  # if they come again, their name does too
            self._unwritten.pop(subject, None)
            self.people.drop(person)
            await self._engine.purge(subject)

    def describe(self, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the known names of these ids, for an answer; a person of the page has the name from their network."""
        found = dict[str, dict[str, Any]]()
        for identity in ids:
            own = identity.removeprefix(f"{PRIVATE}:") if identity.count(":") > 1 else identity
            for table in (self.people, self.chats):
                if own in table.known:
                    found[identity] = {"name": table.find(own), "is_shared": table.is_shared(own)}
                    break
        return found

    def find_chat(self, session_key: str) -> str:
        """Return the id of the chat in a session key, as `describe` knows it; "" if it has no name."""
        parts = session_key.split(":")[2:]
        at = next((at for at, part in enumerate(parts) if part in SHARED_CHATS), 0)
        bot, place = ":".join(parts[:at]), parts[at + 1 :]
        ends = range(len(place), 0, -1) if at else ()  # behind a chat's id a thread and a person may stand
        return next((one for end in ends if (one := ":".join((bot, *place[:end]))) in self.chats.known), "")

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Write until cancelled, and once more then."""
        task_status.started()
        try:
            while True:
                await self._news.wait()
                self._news = anyio.Event()
                await self.flush()
                await anyio.sleep(PAUSE)
        finally:
            with anyio.move_on_after(PAUSE, shield=True):
                await self.flush()

    async def flush(self) -> None:
        """Write what is new. After a failure, of which the journal itself tells, it is tried again with the next."""
        async with self._writing:
            with suppress(EngineError):
                await self._write(dict(self._unwritten))
                for subject in list(self._gone):
                    await self._engine.purge(subject)
                    del self._gone[subject]
                    self._seqs.pop(subject, None)

    async def _write(self, names: Mapping[str, KnownName]) -> None:
        puts = (NewRecord(subject, records.encode(kept), ttl=NAME_TTL) for subject, kept in names.items())
        seqs = await append_in_parts(self._engine, puts)
        for (subject, kept), seq in zip(names.items(), seqs, strict=True):
            if self._unwritten.get(subject) is kept:
                del self._unwritten[subject]
            if self._seqs.get(subject):
                await self._engine.purge(subject, seq - 1)
            self._seqs[subject] = seq

    def _take_in(self, record: Record, kept: KnownName) -> None:
        before = self._seqs.get(record.subject, 0)
        if record.seq > before and record.subject not in self._unwritten:
            self._seqs[record.subject] = record.seq
            self._put(kept)

    def _put(self, kept: KnownName) -> None:
        if gone := self._table_of(kept).put(kept):
            subject = _subject_of(gone)
            self._unwritten.pop(subject, None)
            self._gone[subject] = None

    def _table_of(self, kept: KnownName) -> NameTable:
        return self.chats if kept.is_chat else self.people


def _subject_of(kept: KnownName) -> str:
    return subjects.name_subject_of(kept.of, is_chat=kept.is_chat)
