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
    other subjects of the conversation, the journal refuses the name for two minutes, in some engines for longer.
    After `ttl` seconds by its clock, the journal removes the record and frees its name.
    """

    subject: str
    data: bytes
    msg_id: str | None = None
    expect: int | None = None
    ttl: float | None = None


class SettledRecords(msgspec.Struct, frozen=True, gc=False):
    """Records of a subject, up to and including `upto`, that no reader needs any more: the append limits them to `ttl`.

    The append looks only at earlier records. A record that a reader still needs is written without `ttl`, and gets an
    expiry in this way once no reader needs it. Settle the records of a subject in their order: going back from `upto`,
    the append stops at the first record that has an expiry. If servers keep the journal, a record may expire up to a
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
    """A durable consumer, shared by name: it repeats each record that matches any pattern until its acknowledgement.

    A delivery that is not acknowledged within `ack_wait` seconds is repeated. At most `max_inflight` records are
    delivered and unacknowledged at a time, including records that wait for a retry. Records arrive in the order of
    their sequences. With `new_only` a new consumer starts with the next append, otherwise with the oldest record of the
    journal. `only_wakes` says that a delivery only wakes a worker, so that a superfluous delivery does no harm. If a
    single process owns the journal, a crash may repeat deliveries of an `only_wakes` consumer that were acknowledged in
    the last second. Their attempts start at 1 again.
    """

    name: str
    patterns: tuple[str, ...]
    ack_wait: float = 30.0
    max_inflight: int = 1000
    new_only: bool = False
    only_wakes: bool = False


class EngineHealth(msgspec.Struct, frozen=True):
    """The journal's health: whether the journal takes appends, and the reason if it does not.

    `size` counts the bytes of the records; space that a purge freed does not count, even if the file did not shrink.
    `bound` is the most bytes that the journal may take, 0 if it has no limit of its own. `file_size` counts the bytes
    of stored files if servers keep them, and is 0 if they are in a folder. `warnings` need an operator's attention
    although appends work. `progress` is empty: 0.1.0 described there how it brought an older file up to date.
    `commits` counts the commits since the journal was opened, and `commit_seconds` is the time they took.
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

        Each delivery counts, even if a crash or a busy gateway left it unacknowledged.
        """

    # `ack`, `nak` and `progress` raise no error if the journal is ill or closed: at worst the record comes again.

    async def ack(self) -> None:
        """Mark the record as done, so that it is not delivered again.

        Acknowledging any delivery acknowledges the record.
        """

    async def nak(self, delay: float = 0) -> None:
        """Deliver the record again after `delay` seconds. A second call or a call after a redelivery does nothing."""

    async def progress(self) -> None:
        """Restart the acknowledgement wait; a call after `nak` or after a redelivery has no effect."""


class Consumer(Protocol):
    async def fetch(self, n: int, wait: float) -> list[Delivery]:
        """Return up to n deliveries as soon as there are any; wait at most `wait` seconds, then return an empty list.

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
        """Extend the lease; return False once the lease ran out, even if no other holder took it."""

    async def release(self) -> None: ...


class Tail(Protocol):
    """Live records from the moment of the call to `tail`; the iteration ends when the journal is closed.

    If the connection to a server was interrupted, appended records arrive when the connection is back; published
    messages are lost.
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
        """Store the contents of an open file under a key, in place of any file that the key had.

        Keep the stored file for at least `ttl` seconds, or until it is deleted if `ttl` is `inf`.

        Raises:
            EngineError: the file was not stored.
            OSError: the file cannot be read, or the disk takes no more.
        """

    async def get(self, key: str, file: BinaryIO) -> KeyedFile | None:
        """Write a stored file into an open, empty file; return None if the key has no complete file.

        Raises:
            EngineError: the store does not answer.
            OSError: the open file cannot be written.
        """

    async def delete(self, key: str) -> None:
        """Delete the file of a key, if it exists."""

    async def list_cut_off(self, prefix: str) -> list[str]:
        """List the keys, filtered as by `list`, that hold parts of an incomplete file and no file.

        The `put` of such a key was interrupted, or is still running. `delete` removes the parts.
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
        """Return the file store that all gateways of this journal share; None if other gateways cannot read it."""

    @property
    def append_numbered(self) -> AppendNumbered | None:
        """Return a function like `append`, whose argument makes the records from the sequence of the first record.

        The argument may be called more than once, in any thread. The result is None if other processes append to this
        journal too.
        """

    async def append(self, *puts: NewRecord, settled: Sequence[SettledRecords] = ()) -> list[int]:
        """Append all records or no record, and return the sequence of each. A cancelled call may have succeeded.

        The append also sets the expiry of the `settled` records. It takes up to MOST_AT_ONCE records; a record larger
        than PART_BYTES counts once more for each part of that size.

        Raises:
            AppendSizeError: the append is too large, and nothing was written; `append_in_parts` may help.
            Duplicate: a message id is already in the journal. The journal checks this before Conflict: a caller that
                retries after a lost answer learns that its append succeeded.
            Conflict: a subject's last sequence was not the expected sequence.
            EngineError: nothing was written, for instance because the disk is full.
        """

    async def last(self, subject: str, *, fresh: bool = True) -> Record | None:
        """Return the last record of a subject. `fresh` works as in `read`."""

    async def read(self, pattern: str, after: int = 0, limit: int = 100, *, fresh: bool = True) -> list[Record]:
        """Return the records that match `pattern`, in the order of their sequences, behind the sequence `after`.

        A fresh read sees every append that any gateway had acknowledged. Any other read may see the journal as it was a
        moment ago. It always includes what this process has written, or has seen in a delivery, a tail, a message, a
        lease or a conflict. This is enough for a caller that then appends with `expect`, or that reads because of a
        delivery or message.

        Raises:
            RecordDamage: the disk has changed one of the records.
        """

    async def purge(self, pattern: str, upto: int | None = None, after: int = 0) -> int:
        """Remove the records that match, behind `after` and up to and including `upto`, and return their number.

        The sequences of removed records are never used again. If servers keep the journal, a record that was returned
        with `nak` before the purge may be delivered again only after `ack_wait`.

        The oldest records are removed first; a crash in the middle leaves the rest. The message ids of removed records
        are free.
        """

    async def consumer(self, spec: ConsumerSpec) -> Consumer:
        """Return the durable consumer of this name, with the settings of `spec`; create it if it does not exist.

        New patterns apply from the oldest record that waits for its first delivery, or from the next append if no
        record waits.
        """

    async def consumers(self) -> list[str]:
        """List the names of all consumers."""

    async def forget_consumer(self, name: str) -> None:
        """Remove a consumer and its backlog; a later fetch from this consumer raises EngineError."""

    async def depth(self, name: str) -> int:
        """Count a consumer's records that are pending or in flight; 0 if the consumer does not exist.

        If servers keep the journal, the count may miss an append of the last moment, and may include purged records
        until the consumer has passed them.
        """

    async def list_owed(self, name: str, until: float, after: int = 0, limit: int = 100) -> list[Record]:
        """List a consumer's records behind `after`, pending or in flight, that were appended before the time `until`.

        The call delivers no record. The list is empty if the consumer does not exist. An engine that only knows up to
        which sequence all records were acknowledged may list acknowledged records behind an unacknowledged record.
        """

    async def lease(self, key: str, holder: str, ttl: float = 10.0) -> Lease | None:
        """Take the lease on a key; None while another holder has the key.

        The holder itself gets a new lease, and its old lease ends.
        """

    async def holder(self, key: str) -> str | None: ...

    async def holders(self, beginning: str) -> dict[str, str]:
        """Return the holders of all leases whose keys start with `beginning`, by key."""

    async def publish(self, subject: str, data: bytes, *, version: int = 1) -> None:
        """Send a live message to the current listeners; the message is not stored.

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
        """Listen to appended records and to published messages (sequence 0); a slow reader loses the oldest."""

    async def health(self) -> EngineHealth:
        """Return the journal's health. The call returns even if the disk has failed."""

    def failure(self) -> str:
        """Describe a failure that needs help (damage, a missing disk); "" if the journal can be written.

        After such a failure no record arrives, so do not wait for one. A full disk does not count.
        """

    async def close(self) -> None:
        """Write all pending appends, and close the journal; a second `close` does nothing."""


def count_parts(put: NewRecord) -> int:
    """Count the parts of a record for the limit MOST_AT_ONCE of an append."""
    size = len(put.data)
    return 1 if size <= PART_BYTES else 1 + -(-size // PART_BYTES)


async def append_in_parts(engine: Engine, puts: Iterable[NewRecord]) -> list[int]:
    """Append any number of records in order; after an error in the middle, the earlier records stay."""
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
    """Append each record alone; return the sequence of each, or None if its message id is already in the journal."""
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
        Conflict, Duplicate: the journal works, and a repeated append would fail again.
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
