"""The read positions of networks, kept in the journal: each moves in one append with the message before it.

A network that delivers its events one after another has a `ReadCursor`. Each move names the one before it, so only one
of two readers makes progress; the other meets a `Conflict`, and must stop: events that it has fetched and not
journalled belong to the first.

A network that keeps its messages, but sends none of the past to a new connection, has `ReadMarks`, one for each chat.
After each start, and after each connection that could not be resumed, the messages behind the marks are read again. For
an old mark `alive` counts instead: the time at which everything was known to be read, in all chats. A time in the
future is from a wrong clock, and is ignored.
"""

import uuid
from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import asdict

from gateway.engine.interface import Engine, NewRecord
from gateway.errors import Conflict
from gateway.records import records, subjects

CURSOR_TIDY = 100  # moves of the cursor between two removals of outdated ones
LONGEST_AWAY = records.DAY  # older messages are not read again
OVERLAP = 120.0  # seconds by which a network may be late
TIDY = 20  # moves of a mark between two removals of outdated ones

PositionT = TypeVar("PositionT", int, str)


class ReadCursor(Generic[PositionT]):
    """One reader's position. `take` it first; then add `put` to an append, and call `settle` after it.

    A position is the network's own: a number, or a text that we do not read. `start` is the first one.
    """

    def __init__(self, engine: Engine, platform: str, bot: str, start: PositionT) -> None:
        self._engine = engine
        self._platform = platform
        self._subject = subjects.cursor_subject_of(platform, bot)
        self._reader = uuid.uuid4().hex
        self._seq = 0
        self._moves = 0
        self.value: PositionT = start

    async def take(self) -> None:
        """Continue where the last reader was, and fence that reader off.

        Raises:
            Conflict: another one did so at the same moment.
        """
        self._seq, kept = await records.read_last(self._engine, self._subject, records.CursorRecord)
        self.value = type(self.value)(kept.value.get("at", self.value)) if kept else self.value
        await self.move(self.value)

    def put(self, value: PositionT) -> NewRecord:
        """Make the record of the move to `value`, for an append."""
        kept = records.CursorRecord(platform=self._platform, value={"at": value, "by": self._reader})
        return NewRecord(self._subject, records.encode(kept), expect=self._seq)

    async def move(self, value: PositionT) -> None:
        """Move in a separate append.

        Raises:
            Conflict: another reader moved it.
        """
        await self._engine.append(self.put(value))
        await self.settle(value)

    async def settle(self, value: PositionT) -> None:
        """Check the move after an append that may have held it: if it did not, move now.

        Raises:
            Conflict: another reader moved it.
        """
        seq, kept = await records.read_last(self._engine, self._subject, records.CursorRecord)
        if seq in (0, self._seq):
            await self.move(value)
            return
        if kept is None or kept.value.get("by") != self._reader:
            raise Conflict(f"{self._subject} was moved by another reader")
        self._seq, self.value = seq, value
        self._moves += 1
        if self._moves % CURSOR_TIDY == 1:
            await self._engine.purge(self._subject, seq - 1)


class ReadMark(msgspec.Struct, frozen=True):
    """A chat, and the number of its last taken message, which the network makes grow with time.

    `person` is the person of a direct chat. `inside` is a thread of the chat.
    """

    chat: str
    at: float
    person: str = ""
    inside: str = ""


class ReadMarks:
    """All marks of one bot."""

    def __init__(self, engine: Engine, platform: str, bot: str) -> None:
        self._engine = engine
        self._platform = platform
        self._subject = subjects.cursor_subject_of(platform, bot)
        self._marks: dict[tuple[str, str], ReadMark] = {}
        self._alive = 0.0
        self._moves = 0

    async def load(self) -> None:
        async for _, kept in records.read_all(self._engine, f"{self._subject}.*", records.CursorRecord):
            if "alive" in kept.value:
                self._alive = float(kept.value["alive"])
            else:
                mark = ReadMark(**kept.value)
                self._marks[mark.chat, mark.inside] = mark

    def since(self) -> "MarksSnapshot":
        """Return the present marks, as the place from which everything has to be read again."""
        return MarksSnapshot(dict(self._marks), self._alive, self._engine.clock.latest())

    def at(self, chat: str, inside: str = "") -> float:
        """Return the number of the last taken message there; 0: none."""
        return mark.at if (mark := self._marks.get((chat, inside))) else 0

    def knows(self, chat: str, inside: str = "") -> bool:
        return (chat, inside) in self._marks

    def put(self, mark: ReadMark) -> NewRecord:
        """Make the record of a move, for an append.

        A direct chat is kept for good, others while a session may go on there.
        """
        return self._put(f"{mark.chat}:{mark.inside}", asdict(mark), None if mark.person else records.TRAFFIC_TTL)

    async def move(self, mark: ReadMark) -> None:
        """Move a mark in a separate append."""
        await self._engine.append(self.put(mark))
        await self.note_moved(mark)

    async def note_moved(self, mark: ReadMark) -> None:
        """Note a move that is in the journal."""
        self._marks[mark.chat, mark.inside] = mark
        self._moves += 1
        if self._moves % TIDY == 0:
            await self._tidy(f"{mark.chat}:{mark.inside}")

    async def begin(self, now: float) -> None:
        """Set the start of a new bot: later messages are read again if necessary.

        Call it before the network is reported as up, or messages that people send then could be lost.
        """
        if not self._alive:
            await self.note_alive(now)

    async def note_alive(self, until: float) -> None:
        """Note that everything up to this time has been read, over a connection that worked at that time."""
        until -= self._engine.clock.calculate_difference()
        if until <= self._alive <= self._engine.clock.latest() + OVERLAP:
            return
        self._alive = until
        await self._engine.append(self._put("alive", {"alive": self._alive}, None))
        await self._tidy("alive")

    def _put(self, name: str, value: Mapping[str, float | str], ttl: float | None) -> NewRecord:
        kept = records.CursorRecord(platform=self._platform, value=dict(value))
        return NewRecord(f"{self._subject}.{subjects.token_of(name)}", records.encode(kept), ttl=ttl)

    async def _tidy(self, name: str) -> None:
        subject = f"{self._subject}.{subjects.token_of(name)}"
        if (last := await self._engine.last(subject)) is not None:
            await self._engine.purge(subject, last.seq - 1)


class MarksSnapshot(msgspec.Struct, frozen=True):
    """The marks of one moment; `now` is its time, by a clock that no person sets."""

    marks: Mapping[tuple[str, str], ReadMark]
    alive: float
    now: float

    @property
    def time(self) -> float:
        """The time before which nothing need be read again; 0: the bot was never here before."""
        if not self.alive:
            return 0.0
        return max(self.alive - OVERLAP if self.alive <= self.now + OVERLAP else 0.0, self.now - LONGEST_AWAY)

    def at(self, chat: str, inside: str = "") -> float:
        return mark.at if (mark := self.marks.get((chat, inside))) else 0

    def chats(self) -> list[ReadMark]:
        """List the direct chats with the bot, the most recent first."""
        found = (one for one in self.marks.values() if one.person and not one.inside)
        return sorted(found, key=lambda one: -one.at)
