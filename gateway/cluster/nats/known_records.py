"""A view of the journal's recent records in memory, to answer reads without the servers.

Theory of operation. The server shows each record that it stores to all listeners, with its sequence, and skips no
sequence. So the records shown without a gap are an exact piece of the journal, from some sequence up to an `end`. After
a gap (the connection was lost, other servers took over, a record is in pieces) the view starts again behind the gap, so
that no answer of the view has a hole. The first records of a batch wait until the last has arrived, so that the batch
appears as a whole. Each gateway announces its purges to all listeners, too.

The servers may be ahead of the view by the records on their way. So an answer of the view does not show the journal of
this moment, but of a moment at least as late as every record that we have *heard of*: by our own writes, deliveries,
tails, reads, the record behind a conflict, the sender's view in each message, and the end of the journal when we took a
lease. For a record that we have heard of and do not have, a reader waits a moment, and then asks the servers. For this
reason reads by `read(..., fresh=False)` are safe:

- A reader that appends to a chain names the last record. If its view was too old, the append conflicts; then we have
  heard of the record behind the conflict, so the next view is newer.
- A worker that finds no more work, and acknowledges a doorbell, has seen all records up to that doorbell, because the
  doorbell was delivered to it. Later records have a doorbell of their own.
- A gateway that takes over from another takes its lease, gets a message from it, or follows a chain.

We know of another gateway's purge when its announcement arrives. A read just before that is like a read before the
purge.
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

MOMENT = 0.03  # the time in which records that we have heard of should arrive
MAX_SEQ = (1 << 63) - 1


class Purge(msgspec.Struct, frozen=True):
    """A purge by the node `by`. Matches up to `sure` are gone, later matches may be gone, and no record after `end`."""

    pattern: str
    upto: int | None
    after: int
    sure: int
    end: int
    by: str


class KnownRecords:
    """The view of one journal; a read returns None if the view does not have the answer."""

    def __init__(self, names: Names) -> None:
        self.seen = 0  # the highest sequence that we have heard of
        self.node = uuid.uuid4().hex
        self._names = names
        self._news = Signal()
        self._cache = RecordCache(time.monotonic)
        self._waiting: list[Msg] = []  # messages that wait for the rest of their batch

    def note(self, seq: int) -> None:
        """Note that a record of this sequence exists, or once existed."""
        self.seen = max(self.seen, seq)

    def forget(self) -> None:
        """Empty the view, because records may have been missed."""
        self._cache = RecordCache(time.monotonic)
        self._waiting = []

    def begin(self, end: int) -> None:
        """Start behind this sequence: the server shows us all later records."""
        self.note(end)
        if self._cache.end < end:
            self._begin_anew(end)

    def _begin_anew(self, end: int) -> None:
        self._cache = RecordCache(time.monotonic)
        self._cache.begin(end)

    @property
    def end(self) -> int:
        """The sequence up to which the view is complete; 0 if the view lacks a record that we have heard of."""
        return self._cache.end if self._cache.end >= self.seen else 0

    async def hear(self, message: Msg) -> None:
        """Add a record that the server shows."""
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
            self._begin_anew(seq)  # the server does not show the body of this record
        else:
            stored = headers.get("Nats-Time-Stamp")
            ts = read_time(headers, time_of(stored) if stored else time.time())
            record = Record(seq, self._names.subject_of_stored(message.subject), message.data, ts)
            limit = {seq: time.monotonic() + float(headers[LIFETIME].rstrip("s"))} if LIFETIME in headers else {}
            self._cache.follow([record], limit)

    @property
    def is_behind(self) -> bool:
        """True if a record that we have heard of is still on its way."""
        return 0 < self._cache.end < self.seen

    def count(self, patterns: Sequence[str], after: int) -> int:
        """Count the matches behind a sequence that the view knows; the journal may have more matches."""
        return len({seq for one in patterns for seq in self._cache.list_alive(one, after)})

    async def catch_up(self) -> None:
        """Wait a moment for the records that we have heard of."""
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
        """Note that the servers have no match between these sequences."""
        if end > after:
            self._cache.note_empty_range(pattern, after, end)

    def limit(self, settled: SettledRecords) -> None:
        self._cache.limit(settled.subject, settled.upto, time.monotonic() + settled.ttl)

    def doubt(self) -> None:
        """Start again behind the last known record, because a purge may be unannounced."""
        self._begin_anew(self._cache.end)

    async def hear_purge(self, message: Msg) -> None:
        purge = msgspec.json.decode(message.data, type=Purge)
        if purge.by != self.node:
            self.remove(purge)

    def remove(self, purge: Purge) -> None:
        if self._cache.end < purge.end:
            self.begin(purge.end)  # records on their way may be gone
            return
        upto = MAX_SEQ if purge.upto is None else purge.upto
        found = [seq for seq in self._cache.list_under(purge.pattern, upto) if seq > purge.after]
        if any(seq > purge.sure for seq in found):
            self.doubt()
        else:
            self._cache.follow((), {}, found)
