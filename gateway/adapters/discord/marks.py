"""How far each channel was read, kept in the journal: a mark moves in the same append as the message that it names.

Discord forgets nobody's messages, but tells a new connection nothing of what was said before. So after each start, and
whenever a connection could not be resumed, what is behind the marks is read again. A mark that has become old says
nothing new: `alive`, the time at which everything was known to be read, stands for all channels at once.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import discord

from gateway import records
from gateway.adapters.discord.connection import PLATFORM
from gateway.engine import Engine, Put

LONGEST_AWAY = records.DAY  # what is older is not read again
OVERLAP = 120.0  # seconds by which Discord may be late
TIDY = 20  # moves of a mark between two removals of the outdated
PAGE = 500


@dataclass(frozen=True, slots=True)
class Mark:
    """A channel; in somebody's own chat with the bot, `user` is theirs. `at` is the last message that was taken."""

    channel: int
    user: int
    at: int


class Marks:
    """All marks of one bot."""

    def __init__(self, engine: Engine, bot: str) -> None:
        self._engine = engine
        self._subject = f"gw.cur.{PLATFORM}.{records.token(bot)}"
        self._marks: dict[int, Mark] = {}
        self._alive = 0.0
        self._moves = 0

    async def load(self) -> None:
        after = 0
        while page := await self._engine.read(f"{self._subject}.*", after, PAGE):
            for record in page:
                kept = records.decode(record.data)
                assert isinstance(kept, records.Cursor)
                value = kept.value
                if "alive" in value:
                    self._alive = float(value["alive"])
                else:
                    self._marks[value["channel"]] = Mark(value["channel"], value["user"], value["at"])
            after = page[-1].seq

    def since(self) -> "Since":
        """From where everything has to be read again, as it is known now."""
        return Since(dict(self._marks), self._alive)

    def at(self, channel: int) -> int:
        """The last message of a channel that was taken; 0: none."""
        return mark.at if (mark := self._marks.get(channel)) else 0

    def chats(self) -> list[Mark]:
        """People's own chats with the bot, the liveliest first."""
        return sorted((one for one in self._marks.values() if one.user), key=lambda one: -one.at)

    def put(self, mark: Mark) -> Put:
        """The move, for an append. A chat is known for good, a channel as long as it would be read again."""
        value = {"channel": mark.channel, "user": mark.user, "at": mark.at}
        return self._put(str(mark.channel), value, None if mark.user else 2 * LONGEST_AWAY)

    async def move(self, mark: Mark) -> None:
        """Move by an append of its own."""
        await self._engine.append(self.put(mark))
        await self.moved(mark)

    async def moved(self, mark: Mark) -> None:
        """The move is in the journal."""
        self._marks[mark.channel] = mark
        self._moves += 1
        if self._moves % TIDY == 0:
            await self._tidy(str(mark.channel))

    async def alive(self) -> None:
        """Everything that was said until now has been read."""
        self._alive = time.time()
        await self._engine.append(self._put("alive", {"alive": self._alive}, None))
        await self._tidy("alive")

    def _put(self, name: str, value: Mapping[str, float], ttl: float | None) -> Put:
        kept = records.Cursor(platform=PLATFORM, value=dict(value))
        return Put(f"{self._subject}.{records.token(name)}", records.encode(kept), ttl=ttl)

    async def _tidy(self, name: str) -> None:
        subject = f"{self._subject}.{records.token(name)}"
        if (last := await self._engine.last(subject)) is not None:
            await self._engine.purge(subject, last.seq - 1)


@dataclass(frozen=True, slots=True)
class Since:
    """What had been read at one moment."""

    marks: dict[int, Mark]
    alive: float

    def of(self, channel: int) -> int:
        """The message behind which a channel is to be read again; 0: we were never here before."""
        if not self.alive:
            return 0
        mark = self.marks.get(channel)
        known = max(self.alive - OVERLAP, time.time() - LONGEST_AWAY)
        return max(mark.at if mark else 0, snowflake(known))


def snowflake(seconds: float) -> int:
    """The id that a message of this time would have at least."""
    return max(int(seconds * 1000) - discord.utils.DISCORD_EPOCH, 0) << 22
