"""How far a network was read, kept in the journal: moved in the same append as the message that it stands behind.

Each move names the one before it, so of two readers only one gets on. The other meets a `Conflict`, and must stop: what
it has fetched and not journalled is the first one's.
"""

import uuid

from gateway import records
from gateway.engine import Engine, NewRecord
from gateway.errors import Conflict

TIDY = 100  # moves between two removals of what is outdated


class ReadCursor:
    """One reader's place. `take` it first; then `put` goes into an append, and `settle` sees what became of it."""

    def __init__(self, engine: Engine, platform: str, bot: str) -> None:
        self._engine = engine
        self._platform = platform
        self._subject = records.cursor_subject_of(platform, bot)
        self._reader = uuid.uuid4().hex
        self._seq = 0
        self._moves = 0
        self.value = 0

    async def take(self) -> None:
        """Go on where the last reader was, and fence it off.

        Raises:
            Conflict: another one did so at the same moment.
        """
        last = await self._engine.last(self._subject)
        kept = records.decode(last.data) if last else None
        self.value = int(kept.value.get("at", 0)) if isinstance(kept, records.CursorRecord) else 0
        self._seq = last.seq if last else 0
        await self.move(self.value)

    def put(self, value: int) -> NewRecord:
        """The move to `value`, for an append."""
        kept = records.CursorRecord(platform=self._platform, value={"at": value, "by": self._reader})
        return NewRecord(self._subject, records.encode(kept), expect=self._seq)

    async def move(self, value: int) -> None:
        """Move by an append of its own.

        Raises:
            Conflict: another reader moved it.
        """
        await self._engine.append(self.put(value))
        await self.settle(value)

    async def settle(self, value: int) -> None:
        """After an append that may have held the move to `value`: if it did not, move now.

        Raises:
            Conflict: another reader moved it.
        """
        last = await self._engine.last(self._subject)
        if last is None or last.seq == self._seq:
            await self.move(value)
            return
        kept = records.decode(last.data)
        if not isinstance(kept, records.CursorRecord) or kept.value.get("by") != self._reader:
            raise Conflict(f"{self._subject} was moved by another reader")
        self._seq, self.value = last.seq, value
        self._moves += 1
        if self._moves % TIDY == 1:
            await self._engine.purge(self._subject, last.seq - 1)
