"""How far each chat was read, kept in the journal: a mark moves in the same append as the message that it names.

For networks that keep what was said, but tell a new connection nothing of it. After each start, and whenever a line
could not be mended without a gap, what is behind the marks is read again. A mark that has become old says nothing new:
`alive`, the time at which everything was known to be read, stands for all chats at once.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from gateway import records
from gateway.engine import Engine, NewRecord

LONGEST_AWAY = records.DAY  # what is older is not read again
OVERLAP = 120.0  # seconds by which a network may be late
TIDY = 20  # moves of a mark between two removals of the outdated
PAGE = 500


@dataclass(frozen=True, slots=True)
class ReadMark:
    """A chat, and the last message in it that was taken: the network's own number of it, which grows with time.

    In somebody's own chat with the bot, `person` is theirs. `inside` is a thread of the chat.
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
        self._subject = records.cursor_subject_of(platform, bot)
        self._marks: dict[tuple[str, str], ReadMark] = {}
        self._alive = 0.0
        self._moves = 0

    async def load(self) -> None:
        after = 0
        while page := await self._engine.read(f"{self._subject}.*", after, PAGE):
            for record in page:
                kept = records.decode(record.data)
                assert isinstance(kept, records.CursorRecord)
                if "alive" in kept.value:
                    self._alive = float(kept.value["alive"])
                else:
                    mark = ReadMark(**kept.value)
                    self._marks[mark.chat, mark.inside] = mark
            after = page[-1].seq

    def since(self) -> "MarksSnapshot":
        """From where everything has to be read again, as it is known now."""
        return MarksSnapshot(dict(self._marks), self._alive)

    def at(self, chat: str, inside: str = "") -> float:
        """The last message that was taken there; 0: none."""
        return mark.at if (mark := self._marks.get((chat, inside))) else 0

    def knows(self, chat: str, inside: str = "") -> bool:
        return (chat, inside) in self._marks

    def put(self, mark: ReadMark) -> NewRecord:
        """The move, for an append. A person's chat is known for good, others as long as anybody may go on there."""
        value: dict[str, float | str] = {"chat": mark.chat, "at": mark.at, "person": mark.person, "inside": mark.inside}
        return self._put(f"{mark.chat}:{mark.inside}", value, None if mark.person else records.TRAFFIC_TTL)

    async def move(self, mark: ReadMark) -> None:
        """Move by an append of its own."""
        await self._engine.append(self.put(mark))
        await self.moved(mark)

    async def moved(self, mark: ReadMark) -> None:
        """The move is in the journal."""
        self._marks[mark.chat, mark.inside] = mark
        self._moves += 1
        if self._moves % TIDY == 0:
            await self._tidy(f"{mark.chat}:{mark.inside}")

    async def alive(self, until: float) -> None:
        """Everything that was said until then has been read: a line that was good then has told it."""
        if until <= self._alive:
            return
        self._alive = until
        await self._engine.append(self._put("alive", {"alive": self._alive}, None))
        await self._tidy("alive")

    def _put(self, name: str, value: Mapping[str, float | str], ttl: float | None) -> NewRecord:
        kept = records.CursorRecord(platform=self._platform, value=dict(value))
        return NewRecord(f"{self._subject}.{records.token_of(name)}", records.encode(kept), ttl=ttl)

    async def _tidy(self, name: str) -> None:
        subject = f"{self._subject}.{records.token_of(name)}"
        if (last := await self._engine.last(subject)) is not None:
            await self._engine.purge(subject, last.seq - 1)


@dataclass(frozen=True, slots=True)
class MarksSnapshot:
    """What had been read at one moment."""

    marks: Mapping[tuple[str, str], ReadMark]
    alive: float

    @property
    def time(self) -> float:
        """The time before which nothing need be read again; 0: we were never here before."""
        return max(self.alive - OVERLAP, time.time() - LONGEST_AWAY) if self.alive else 0.0

    def at(self, chat: str, inside: str = "") -> float:
        return mark.at if (mark := self.marks.get((chat, inside))) else 0

    def chats(self) -> list[ReadMark]:
        """People's own chats with the bot, the liveliest first."""
        found = (one for one in self.marks.values() if one.person and not one.inside)
        return sorted(found, key=lambda one: -one.at)
