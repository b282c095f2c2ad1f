"""What we alone have written lately, in memory: it is asked before the servers are.

Nobody else writes while we have the right to (`WriteRight`). But a gateway that was held up may write once more after
it has lost its own. So the sequences are looked at too: each record has the next one, whoever writes it. Where ours
have no gap up to the highest that we have heard of, be it from a consumer, we know all there is behind some point.
While there is a gap, nothing is answered from here. Mostly it is one of ours whose answer is under way, for which a
moment is waited; where many stand behind it, where the right is another one, and where the connection came anew, what
was known is forgotten.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from gateway.engine.interface import NewRecord, Record, SettledRecords
from gateway.engine.live_messages import Signal
from gateway.engine.record_cache import RecordCache
from gateway.engine.subjects import matches

MOST_AHEAD = 200  # appends behind a gap
MOMENT = 0.03  # in which the answer comes to what others have told of already
MAX_SEQ = (1 << 63) - 1


class WriteRight(Protocol):
    """The right to be the only one who writes."""

    @property
    def token(self) -> int:
        """Another one where somebody else may have had the right meanwhile."""

    @property
    def is_certain(self) -> bool:
        """Asks whether nobody else can have it now."""

    async def wait(self) -> None:
        """Until it is certain; raises EngineError: it does not become so."""


class OwnRecords:
    """Made for one journal. Answers are None where it is not known here; without a `right` nothing is."""

    def __init__(self) -> None:
        self.right: WriteRight | None = None
        self.seen = 0  # the highest sequence that we have heard of
        self._token = 0
        self._writing = 0
        self._news = Signal()
        self._cache = RecordCache()
        self._ahead: dict[int, tuple[list[Record], dict[int, float]]] = {}  # behind a gap, by the first sequence

    def note(self, seq: int) -> None:
        """A record of this sequence is there, or was."""
        self.seen = max(self.seen, seq)

    def forget(self) -> None:
        self._cache = RecordCache()
        self._ahead.clear()

    @property
    def token(self) -> int:
        """Of the right that we have now."""
        return self.right.token if self.right else 0

    @property
    def end(self) -> int:
        """Up to where we know that nothing is missing here; 0 where something may be."""
        return self._cache.end if self._is_ours and self._cache.end >= self.seen else 0

    @property
    def _is_ours(self) -> bool:
        return self.right is not None and self.right.is_certain and self.right.token == self._token

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Around an append, until it is known here."""
        self._writing += 1
        try:
            yield
        finally:
            self._writing -= 1
            self._news.notify()

    async def catch_up(self) -> None:
        """Wait a moment where something is missing that may be ours."""
        limit = time.monotonic() + MOMENT
        while self._is_ours and self._writing and 0 < self._cache.end < self.seen:
            left = limit - time.monotonic()
            if left <= 0:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.event.wait(), left)

    def read(self, pattern: str, after: int, limit: int) -> list[Record] | None:
        return self._cache.read(pattern, after, limit, time.monotonic()) if self.end else None

    def last(self, subject: str) -> Record | None:
        return self._cache.last(subject, time.monotonic()) if self.end else None

    def note_empty_range(self, pattern: str, after: int, end: int) -> None:
        """The servers say that nothing of it is between these two."""
        if end > after:
            self._cache.note_empty_range(pattern, after, end)

    def add(self, token: int, puts: Sequence[NewRecord], sequences: Sequence[int], first: int, begun: float) -> None:
        """These were written, under the right of this token, in an append that began then and with this sequence."""
        self.note(sequences[-1])
        if self.right is None or token != self.right.token:
            return
        if token != self._token:
            self.forget()
            self._token = token
        now = time.monotonic()
        pairs = list(zip(sequences, puts, strict=True))
        self._ahead[first] = (
            [Record(seq, put.subject, put.data, begun) for seq, put in pairs],
            {seq: now + put.ttl for seq, put in pairs if put.ttl is not None},
        )
        if first <= self._cache.end or len(self._ahead) > MOST_AHEAD:
            self.forget()
        while known := self._ahead.pop(self._cache.end + 1 if self._cache.end else first, None):
            self._cache.follow(*known)

    def limit(self, settled: Sequence[SettledRecords]) -> None:
        now = time.monotonic()
        for one in settled:
            self._cache.limit(one.subject, one.upto, now + one.ttl)
            for records, ends in self._ahead.values():
                for record in records:
                    if record.subject == one.subject and record.seq <= one.upto:
                        ends[record.seq] = min(ends.get(record.seq, now + one.ttl), now + one.ttl)

    def remove(self, pattern: str, upto: int | None, after: int, end: int) -> None:
        """They were purged; of what was written meanwhile, behind `end`, nobody knows whether it was there already."""
        found = [seq for seq in self._list(pattern, MAX_SEQ if upto is None else upto) if seq > after]
        if any(seq > end for seq in found):
            self.forget()
        else:
            self._cache.follow((), {}, found)

    def _list(self, pattern: str, upto: int) -> Iterator[int]:
        yield from self._cache.list_under(pattern, upto)
        for records, _ in self._ahead.values():
            yield from (one.seq for one in records if one.seq <= upto and matches(pattern, one.subject))

    @property
    def reached(self) -> int:
        """Where what is known without a gap ends, whether it may be answered from or not."""
        return self._cache.end
