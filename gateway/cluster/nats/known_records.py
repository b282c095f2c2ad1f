"""What is known of the journal without asking the servers: what anybody appended lately, in memory.

Theory of operation. The server shows each record that it stores to all who listen, with its sequence, and a sequence
is left out by none. So what was shown without a gap is a piece of the journal as it is, from some sequence up to an
`end`. Where one is missing (the connection was lost, other servers took over, a record lies in pieces) what was known
is forgotten, and one begins anew behind the gap: no answer from here ever has a hole in it. Of an append of several the
first wait until the last has come, so that it is known as a whole. What is purged is told to all who listen, too.

The servers may be ahead of the end by what is on its way to us. So an answer from here does not say what stands in the
journal now; it says what stood there at a moment that is at least as late as all that we have *heard of*: what we wrote
ourselves, what consumers delivered and tails told, what was read, the conflict that an append ended in, what somebody
knew who sent us a message, and what was there when we took a lease. What we have heard of and do not have is waited for
a moment, and else the servers are asked. With this whoever reads so (`read(..., fresh=False)`) is right:

- Who reads a chain and appends to it says behind which record. Was the view too old, it ends in a conflict; that has
  been heard of, so the next view is newer.
- Who finds that nothing is left to do, and acknowledges a doorbell, has seen all up to that doorbell: it was delivered.
  What came later has a doorbell of its own.
- Who takes over from another takes his lease, or is told by him, or goes by a chain.

What others removed is known when they say so: until then, an instant, it is read as if it had been asked for before.
"""

import asyncio
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from nats.aio.msg import Msg

from gateway.cluster.nats.connection import time_of
from gateway.cluster.nats.names import Names
from gateway.cluster.nats.stored_messages import BATCH, BATCH_END, BODY, LIFETIME, read_time
from gateway.engine.interface import Record, SettledRecords
from gateway.engine.live_messages import Signal
from gateway.engine.record_cache import RecordCache

MOMENT = 0.03  # in which comes what we have heard of
MAX_SEQ = (1 << 63) - 1


class Purge(msgspec.Struct, frozen=True):
    """What `by` removed. All of it up to `sure` is gone; perhaps what came after, and nothing behind `end`."""

    pattern: str
    upto: int | None
    after: int
    sure: int
    end: int
    by: str


class KnownRecords:
    """Made for one journal; an answer is None where it is not known here."""

    def __init__(self, names: Names) -> None:
        self.seen = 0  # the highest sequence that we have heard of
        self.node = uuid.uuid4().hex
        self._names = names
        self._news = Signal()
        self._cache = RecordCache(time.monotonic)
        self._waiting: list[Msg] = []  # for the rest of their append

    def note(self, seq: int) -> None:
        """A record of this sequence is there, or was."""
        self.seen = max(self.seen, seq)

    def forget(self) -> None:
        """Something may have been missed."""
        self._cache = RecordCache(time.monotonic)
        self._waiting = []

    def begin(self, end: int) -> None:
        """All that comes behind this sequence is shown to us, or was."""
        self.note(end)
        if self._cache.end < end:
            self._begin_anew(end)

    def _begin_anew(self, end: int) -> None:
        self._cache = RecordCache(time.monotonic)
        self._cache.begin(end)

    @property
    def end(self) -> int:
        """Up to where nothing is missing here; 0 where something is of what we have heard of."""
        return self._cache.end if self._cache.end >= self.seen else 0

    async def hear(self, message: Msg) -> None:
        """A record is shown."""
        headers = message.headers or {}
        self._waiting.append(message)
        if BATCH in headers and BATCH_END not in headers:
            return
        shown, self._waiting = self._waiting, []
        for one in shown:
            self._take_in(one)
        self._news.notify()

    def _take_in(self, message: Msg) -> None:
        headers = message.headers or {}
        seq = int(headers["Nats-Sequence"])
        self.note(seq)
        if seq <= self._cache.end:
            return
        pieces = int(headers[BODY].partition(" ")[2]) if BODY in headers else 0
        if seq - pieces != self._cache.end + 1:
            self._begin_anew(seq - pieces - 1)
        if pieces:
            self._begin_anew(seq)  # its body is not here
        else:
            stored = headers.get("Nats-Time-Stamp")
            ts = read_time(headers, time_of(stored) if stored else time.time())
            record = Record(seq, self._names.subject_of_stored(message.subject), message.data, ts)
            limit = {seq: time.monotonic() + float(headers[LIFETIME].rstrip("s"))} if LIFETIME in headers else {}
            self._cache.follow([record], limit)

    @property
    def is_behind(self) -> bool:
        """Is something that we have heard of on its way?"""
        return 0 < self._cache.end < self.seen

    def count(self, patterns: Sequence[str], after: int) -> int:
        """So many that match are known here behind a sequence; there may be more."""
        return len({seq for one in patterns for seq in self._cache.list_alive(one, after)})

    async def catch_up(self) -> None:
        """Wait a moment for what we have heard of."""
        limit = time.monotonic() + MOMENT
        while self.is_behind:
            left = limit - time.monotonic()
            if left <= 0:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.event.wait(), left)

    def read(self, pattern: str, after: int, limit: int) -> list[Record] | None:
        return self._cache.read(pattern, after, limit) if self.end else None

    def last(self, subject: str) -> Record | None:
        return self._cache.last(subject) if self.end else None

    def note_empty_range(self, pattern: str, after: int, end: int) -> None:
        """The servers say that nothing of it is between these two."""
        if end > after:
            self._cache.note_empty_range(pattern, after, end)

    def limit(self, settled: SettledRecords) -> None:
        self._cache.limit(settled.subject, settled.upto, time.monotonic() + settled.ttl)

    def doubt(self) -> None:
        """Something was removed, and nobody has told us yet."""
        self._begin_anew(self._cache.end)

    async def hear_purge(self, message: Msg) -> None:
        purge = msgspec.json.decode(message.data, type=Purge)
        if purge.by != self.node:
            self.remove(purge)

    def remove(self, purge: Purge) -> None:
        if self._cache.end < purge.end:
            self.begin(purge.end)  # what is still on its way may be gone
            return
        upto = MAX_SEQ if purge.upto is None else purge.upto
        found = [seq for seq in self._cache.list_under(purge.pattern, upto) if seq > purge.after]
        if any(seq > purge.sure for seq in found):
            self.doubt()
        else:
            self._cache.follow((), {}, found)
