"""The journal's contract: an append-only log with compare-and-set, durable consumers, leases, and live messages.

Order and ownership come from compare-and-set on the log, never from delivery and never from a lock. A subject is a name
of segments joined by dots; a segment is not empty and contains no space, no control character, no `*` and no `>`. In a
pattern `*` matches exactly one segment, and `>` as the last segment matches one or more; nothing else is special. A
name that breaks these rules raises ValueError. Code above this interface must not depend on which engine it uses.

Every call raises EngineError once the journal is closed.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import BinaryIO, Protocol, TypeAlias, TypeVar

import anyio
import msgspec

from gateway.backoff import Attempts, Backoff
from gateway.engine.journal_clock import JournalClock
from gateway.errors import Conflict, Duplicate, EngineError

ILL_JOURNAL_BACKOFF = Backoff(0.25, 15.0)
MOST_AT_ONCE = 1000  # the number of parts in an append
PART_BYTES = 1_000_000  # a larger record has several parts
HELD_SECONDS = 8.5  # `ack_wait`: deliveries of a gateway that died go to another gateway when its leases expire

log = logging.getLogger(__name__)

T = TypeVar("T")


class NewRecord(msgspec.Struct, frozen=True, gc=False):
    """One record to append.

    `expect` is the sequence that must be the subject's last before this append (0: the subject is empty). `msg_id`
    names the record: while it exists, the journal refuses another record with this name under the same subject. Under
    other subjects of the same conversation it refuses one for at least two minutes, and for longer if the engine can.
    After `ttl` seconds by the journal's clock the record and its name are removed, as by a purge.
    """

    subject: str
    data: bytes
    msg_id: str | None = None
    expect: int | None = None
    ttl: float | None = None


class SettledRecords(msgspec.Struct, frozen=True, gc=False):
    """Records of a subject up to and including `upto` that are done: those without a limit get `ttl` from now on.

    This applies to records that exist before the append. A record is written without `ttl` while a reader still waits
    for it, and gets its limit here once none does. Records are settled in the order in which they were written: those
    before the first one that has a limit stay as they are. If servers keep the journal, a record may expire up to a
    fourteenth of its `ttl` later, or sooner if the servers are set to keep less.
    """

    subject: str
    upto: int
    ttl: float


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record of the journal. `ts` is the time of its append, by the journal's clock."""

    seq: int
    subject: str
    data: bytes
    ts: float


class ConsumerSpec(msgspec.Struct, frozen=True):
    """A durable consumer: shared by name, it delivers each record that matches any pattern until it is acknowledged.

    A delivery that is not acknowledged within `ack_wait` seconds is repeated. At most `max_inflight` records are out at
    a time, including those that wait for a retry. Records arrive in the order of their sequences. `new_only` applies
    when the consumer is created: it starts with the next append, otherwise with the oldest record of the journal.
    `only_wakes` says that a delivery only wakes a worker, so that one too many does no harm. If a single process owns
    the journal, some deliveries of such a consumer that were acknowledged in the last second come again after a crash,
    and their attempts start at 1.
    """

    name: str
    patterns: tuple[str, ...]
    ack_wait: float = 30.0
    max_inflight: int = 1000
    new_only: bool = False
    only_wakes: bool = False


class EngineHealth(msgspec.Struct, frozen=True):
    """The journal's health: if it takes appends, and the reason if it does not.

    `size` counts the bytes of the records; space that a purge freed does not count, even if the file did not shrink.
    `bound` is the most they may take, 0 if the journal has no bound of its own. `file_size` counts the bytes of stored
    files if servers keep them, and is 0 if they are in a folder. `warnings` need an operator's attention although
    appends work. `progress` describes maintenance of the file that runs beside the traffic, "" if none runs. `commits`
    counts the commits since the journal was opened, and `commit_seconds` is the time they took.
    """

    ok: bool
    detail: str
    records: int = 0
    size: int = 0
    bound: int = 0
    warnings: tuple[str, ...] = ()
    progress: str = ""
    commits: int = 0
    commit_seconds: float = 0.0
    file_size: int = 0


class Delivery(Protocol):
    """One record handed to a consumer, at least once."""

    @property
    def record(self) -> Record: ...

    @property
    def attempt(self) -> int:
        """The number of this delivery, from 1.

        The engine counts, so a crash or a gateway that is too busy counts too.
        """

    # None of the three raises an error if the journal is ill or closed: the worst result is one more delivery.

    async def ack(self) -> None:
        """Mark the record as done, so that it is not delivered again.

        Acknowledging any delivery acknowledges the record.
        """

    async def nak(self, delay: float = 0) -> None:
        """Deliver the record again after `delay` seconds. Only the first call counts, and none after a redelivery."""

    async def progress(self) -> None:
        """Restart the acknowledgement wait. Without effect after `nak` or after a redelivery."""


class Consumer(Protocol):
    async def fetch(self, n: int, wait: float) -> list[Delivery]:
        """Wait for deliveries and return up to n as soon as one arrives; return an empty list after `wait` seconds.

        A journal that cannot write delivers nothing, and resumes automatically. A cancelled fetch takes no delivery.
        """

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge several deliveries of this consumer, in one commit if the engine makes commits."""


class Lease(Protocol):
    """A right that expires `ttl` seconds after its last renewal, by a clock that never jumps."""

    @property
    def token(self) -> int:
        """A fencing token: it grows with every new holder of any key, across restarts too."""

    async def renew(self) -> bool:
        """Extend the lease; return False once it ran out, even if no other holder took it."""

    async def release(self) -> None: ...


class Tail(Protocol):
    """Live records from the moment of the call; it ends when the journal is closed.

    If the connection to a server was interrupted, appended records arrive when it is back; published messages are lost.
    """

    @property
    def dropped(self) -> int:
        """The number of records that a slow reader has lost."""

    def __aiter__(self) -> AsyncIterator[Record]: ...

    async def __anext__(self) -> Record: ...


class KeyedFile(msgspec.Struct, frozen=True, gc=False):
    """A stored file. `changed` is its modification time when it was put, in whole seconds."""

    key: str
    size: int
    changed: float


class FileStore(Protocol):
    """A store for data that is too large for records: files by their keys, each complete or absent.

    A key is a path of at most three segments, `telegram/1002/5f0c.jpg`, of letters, digits, `%`, `-`, `_` and dots; no
    segment is `.` or `..`. Any other key raises ValueError. A file is never in memory as a whole.
    """

    async def put(self, key: str, file: BinaryIO, ttl: float) -> None:
        """Store the contents of an open file under a key and replace what was there.

        Keep it for at least `ttl` seconds.

        `inf` keeps it until it is deleted.

        Raises:
            EngineError: the file was not stored.
            OSError: the file cannot be read, or the disk takes no more.
        """

    async def get(self, key: str, file: BinaryIO) -> KeyedFile | None:
        """Write a stored file into an open, empty file; return None if it was not found, even if something was written.

        Raises:
            EngineError: the store does not answer.
            OSError: the open file cannot be written.
        """

    async def delete(self, key: str) -> None:
        """Delete the file of a key, if it exists."""

    async def list_cut_off(self, prefix: str) -> list[str]:
        """List the keys, filtered as by `list`, that hold parts of an incomplete file and no file.

        The `put` was interrupted, or is still running. `delete` removes the parts.
        """

    async def list(self, prefix: str = "") -> list[KeyedFile]:
        """List the files of this key and of the keys below it (`prefix/...`), by their keys; "" lists all."""


AppendNumbered: TypeAlias = Callable[[Callable[[int], Sequence[NewRecord]]], Awaitable[list[int]]]
RequestHandler: TypeAlias = Callable[[bytes], Awaitable[bytes]]
StopServing: TypeAlias = Callable[[], Awaitable[None]]


class Engine(Protocol):
    @property
    def clock(self) -> JournalClock:
        """The clock that decides when records expire."""

    @property
    def files(self) -> FileStore | None:
        """Return the store that other gateways share; None if no other gateway can read this journal."""

    @property
    def append_numbered(self) -> AppendNumbered | None:
        """Return a function that works as `append`; its argument makes the records by the sequence of the first one.

        The argument may be called more than once, in any thread. None if other processes append to this journal too.
        """

    async def append(self, *puts: NewRecord, settled: Sequence[SettledRecords] = ()) -> list[int]:
        """Append all records or none, and return a sequence for each. A cancelled caller does not know which.

        The append also sets the limit of the `settled` records. It takes up to MOST_AT_ONCE records; a record larger
        than PART_BYTES counts once more for each part of that size.

        Raises:
            AppendSizeError: the append is too large, and nothing was written; `append_in_parts` may help.
            Duplicate: a message id is already in the journal. Checked before Conflict: a caller that retries
                after a lost answer learns that its append succeeded.
            Conflict: a subject's last sequence was not the expected one.
            EngineError: nothing was written, for instance because the disk is full.
        """

    async def last(self, subject: str, *, fresh: bool = True) -> Record | None:
        """Return the last record of a subject. `fresh` works as in `read`."""

    async def read(self, pattern: str, after: int = 0, limit: int = 100, *, fresh: bool = True) -> list[Record]:
        """Return the records that match, in the order of their sequences, starting after `after`.

        A fresh read sees every append that any gateway had acknowledged. A read that is not `fresh` may see the journal
        as it was a moment ago, but always includes what this process has written, or has seen in a delivery, a tail, a
        message, a lease or a conflict. That is enough for a caller that writes with `expect` afterwards, or that reads
        because it was notified.

        Raises:
            RecordDamage: the disk has changed one of the records.
        """

    async def purge(self, pattern: str, upto: int | None = None, after: int = 0) -> int:
        """Remove the records that match, after `after` and up to and including `upto`, and return how many they were.

        Sequences never return. If servers keep the journal, a record that was returned with `nak` and has not come
        again may come only after `ack_wait`.

        The oldest records go first; a crash in the middle leaves the rest. Message ids go with their records.
        """

    async def consumer(self, spec: ConsumerSpec) -> Consumer:
        """Return the durable consumer of this name. Create it if it does not exist, and update its settings.

        New patterns apply from the oldest record that still waits for its first delivery, or from now on if none waits.
        """

    async def consumers(self) -> list[str]:
        """List the names of all consumers."""

    async def forget_consumer(self, name: str) -> None:
        """Remove a consumer and its backlog; a later fetch from it raises EngineError."""

    async def depth(self, name: str) -> int:
        """Count a consumer's records that are pending or in flight; 0 if the consumer does not exist.

        If servers keep the journal, the count may miss an append of the last moment, and may include purged records
        until the consumer has passed them.
        """

    async def list_owed(self, name: str, until: float, after: int = 0, limit: int = 100) -> list[Record]:
        """List a consumer's records, pending or in flight, that were appended before `until`, in order after `after`.

        This delivers nothing. The list is empty if the consumer does not exist. An engine that only knows the point up
        to which everything was acknowledged may include acknowledged records behind one that was not.
        """

    async def lease(self, key: str, holder: str, ttl: float = 10.0) -> Lease | None:
        """Take the lease on a key; None while another holder has it.

        Its own holder gets a new one, and the old one ends.
        """

    async def holder(self, key: str) -> str | None: ...

    async def holders(self, beginning: str) -> dict[str, str]:
        """Return the holders of all leases whose keys start with `beginning`, by key."""

    async def publish(self, subject: str, data: bytes, *, version: int = 1) -> None:
        """Send a live message to the current listeners; it is not stored.

        `version` is the format version that a reader needs; raise it when a format changes that gateways of the
        previous release know. A gateway that cannot read the message skips it and logs that.
        """

    async def request(self, subject: str, data: bytes, timeout: float, *, version: int = 1) -> bytes:
        """Publish a request and wait for the one answer, in the version of the request.

        If the caller stops waiting, the server still finishes its answer.

        Raises:
            TimeoutError: no one serves the subject, or no answer came in time.
            EngineError: the server failed, or cannot read this version of the request.
        """

    async def serve(self, subject: str, answer: RequestHandler) -> StopServing:
        """Answer requests on a subject until the returned function is called; only one server per subject at a time."""

    async def tail(self, *patterns: str) -> Tail:
        """Listen to live records, appended (with their sequence) and published (0); a slow reader loses the oldest."""

    async def health(self) -> EngineHealth:
        """Return the journal's health. This works even if the disk has failed."""

    def failure(self) -> str:
        """Describe a failure that needs help (damage, a missing disk); "" if the journal can be written.

        Do not wait for a record after such a failure. A full disk is not one.
        """

    async def close(self) -> None:
        """Write what was handed over, and close the journal; further calls do nothing."""


def count_parts(put: NewRecord) -> int:
    """Count the parts of a record, as an append counts them."""
    size = len(put.data)
    return 1 if size <= PART_BYTES else 1 + -(-size // PART_BYTES)


async def append_in_parts(engine: Engine, puts: Iterable[NewRecord]) -> list[int]:
    """Append any number of records in order; if this fails in the middle, the first ones stay."""
    sequences: list[int] = []
    waiting: list[NewRecord] = []
    parts = 0
    for put in puts:
        if waiting and parts + count_parts(put) > MOST_AT_ONCE:
            sequences += await engine.append(*waiting)
            waiting, parts = [], 0
        waiting.append(put)
        parts += count_parts(put)
    return sequences + (await engine.append(*waiting) if waiting else [])


async def append_new(engine: Engine, *puts: NewRecord) -> list[int | None]:
    """Append the records one by one; None for each whose message id is already in the journal."""
    sequences: list[int | None] = []
    for put in puts:
        try:
            sequences += await engine.append(put)
        except Duplicate:
            sequences.append(None)
    return sequences


async def append_until_written(append: Callable[[], Awaitable[T]], what: str) -> T:
    """Repeat an append that must succeed, because it records what was done, until an ill journal recovers.

    `what` names the waiting task in the log.

    Raises:
        Conflict, Duplicate: these are answers, not failures.
    """
    attempts = Attempts(ILL_JOURNAL_BACKOFF)
    while True:
        try:
            return await append()
        except (Conflict, Duplicate):
            raise
        except EngineError as error:
            log.warning("%s waits for the journal: %s", what, error)
            await anyio.sleep(attempts.pause())


def make_shards_error(journal: str) -> EngineError:
    """Make the error for a journal that 0.1.0 spread over shards."""
    return EngineError(
        f"{journal} is in shards, which this version does not read\n"
        "open it with hermes-gateway 0.1.0 (456da991), and take out what you want with `people export` and "
        "`sessions export`"
    )
