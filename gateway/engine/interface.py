"""The journal's contract: an append-only log with compare-and-set, durable consumers, leases, and live messages.

Order and ownership come from compare-and-set on the log, never from delivery and never from a lock. A subject is
a name of segments joined by dots; a segment is not empty and has no space in it, no control character, `*` or `>`.
In a pattern `*` stands for exactly one segment, and `>` as the last segment for one or more; nothing else is
special. A name against these rules is a ValueError. Nothing above this interface may know which engine it stands on.

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
MOST_AT_ONCE = 1000  # parts of an append
PART_BYTES = 1_000_000  # a larger record has several parts
HELD_SECONDS = 8.5  # `ack_wait`: what a gateway that died had in hands comes to another one when its leases are over

log = logging.getLogger(__name__)

T = TypeVar("T")


class NewRecord(msgspec.Struct, frozen=True, gc=False):
    """One record to append.

    `expect` is the sequence that must be the subject's last before this append (0: there is none). `msg_id` names
    the record: while one of that name is there, another is refused under its subject; under other subjects of its
    conversation too for two minutes at least, and longer where the engine can. After `ttl` seconds by the journal's
    clock the record is gone as if purged, its name with it.
    """

    subject: str
    data: bytes
    msg_id: str | None = None
    expect: int | None = None
    ttl: float | None = None


class SettledRecords(msgspec.Struct, frozen=True, gc=False):
    """Records of a subject, up to and with `upto`, that are done: those without a limit have one from now on.

    Those that stand there before the append. What is written without `ttl` because somebody still waits for it is
    limited so, when nobody does any more. It is done in the order in which it was written: those before the first one
    that has a limit are left as they are. Where servers keep the journal, the limit is reached up to a fourteenth
    later, or sooner where they are to keep less.
    """

    subject: str
    upto: int
    ttl: float


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record as it stands in the journal. `ts` is the time of its append, by the journal's clock."""

    seq: int
    subject: str
    data: bytes
    ts: float


class ConsumerSpec(msgspec.Struct, frozen=True):
    """A durable consumer: shared by name, it delivers what matches any pattern until each is acknowledged.

    A delivery that is not acknowledged within `ack_wait` seconds is made again. At most `max_inflight` records
    are out at a time, those that wait for a repetition counted. They come in the order of their sequences.
    `new_only` speaks when the consumer is made: it begins with what is appended from then on, else with the oldest
    record that is kept. `only_wakes`: a delivery says "look", and one too many does no harm; where one process has the
    journal, some that were acknowledged in the last second come again after a crash, and tries begin at 1.
    """

    name: str
    patterns: tuple[str, ...]
    ack_wait: float = 30.0
    max_inflight: int = 1000
    new_only: bool = False
    only_wakes: bool = False


class EngineHealth(msgspec.Struct, frozen=True):
    """Whether the journal takes appends, and in words why not.

    `size` counts the bytes that its records take; what a purge freed is not counted, whether the file shrank or not.
    `bound` is how many they may take, 0 where the journal has no bound of its own.
    `file_size` counts those that files take where servers keep them; where they lie in a folder it is 0.
    `warnings` are what an operator must look at though appends are taken; `progress` is what is done to the file beside
    the traffic, "" where nothing is. `commits` were made since it was opened, in `commit_seconds`.
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
        """1 at the first delivery; counted by the engine, so that a crash counts too, or a gateway that is too busy."""

    # None of the three raises because the journal is ill or closed: the worst that follows is one more delivery.

    async def ack(self) -> None:
        """Done; it is not delivered again. Whichever delivery of the record is acknowledged, all are."""

    async def nak(self, delay: float = 0) -> None:
        """Not done: deliver it again after `delay` seconds. The first call counts; without effect once it was delivered
        again."""

    async def progress(self) -> None:
        """Still at work: the acknowledgement wait starts again. Without effect once it was given back with `nak`, or
        delivered again."""


class Consumer(Protocol):
    async def fetch(self, n: int, wait: float) -> list[Delivery]:
        """Waits for deliveries and returns at most n, as soon as there is one; an empty list after `wait` seconds.

        A journal that cannot write delivers nothing, and goes on by itself when it can. A fetch that is cancelled
        took nothing.
        """

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """As `ack` of each of them, which came from here: in one commit where the engine makes commits."""


class Lease(Protocol):
    """A right that ends by itself `ttl` seconds after the last renewal, by a clock that never jumps."""

    @property
    def token(self) -> int:
        """Grows with every new holder of any key, over restarts too: a fence."""

    async def renew(self) -> bool:
        """Extends the lease; False once it ran out, even if nobody else took it."""

    async def release(self) -> None: ...


class Tail(Protocol):
    """Live records, from the moment it was asked for; ends when the journal is closed.

    What was appended while the way to a server was cut off comes when it is there again; what was published, does not.
    """

    @property
    def dropped(self) -> int:
        """How many records a slow reader has lost."""

    def __aiter__(self) -> AsyncIterator[Record]: ...

    async def __anext__(self) -> Record: ...


class KeyedFile(msgspec.Struct, frozen=True, gc=False):
    """A file as it is stored. `changed`: when it was, in whole seconds, by the file that was put."""

    key: str
    size: int
    changed: float


class FileStore(Protocol):
    """What is too large for records: files by their keys, each whole or not there.

    A key is a path of three segments at most, `telegram/1002/5f0c.jpg`, of letters, digits, `%`, `-`, `_` and dots;
    none of them is `.` or `..`. Another key is a ValueError. No file is ever in memory as a whole.
    """

    @property
    def is_shared(self) -> bool:
        """Whether other gateways have it from here. Where they do not, whatever lies in a file may stay there."""

    async def put(self, key: str, file: BinaryIO, ttl: float) -> None:
        """Store what is in an open file, in place of what was under that key. It is kept for `ttl` seconds at least;
        `inf`: until it is deleted.

        Raises:
            EngineError: it is not stored.
            OSError: it cannot be read, or the disk takes no more.
        """

    async def get(self, key: str, file: BinaryIO) -> KeyedFile | None:
        """Write it into an open file, which is empty; None: there is none, whatever was written.

        Raises:
            EngineError: nobody answers.
            OSError: it cannot be written.
        """

    async def delete(self, key: str) -> None:
        """Nothing is under that key any more."""

    async def list_cut_off(self, prefix: str) -> list[str]:
        """The keys, as of `list`, under which nothing is and parts of a file take room: of a `put` that was cut off, or
        that goes on right now. `delete` removes them.
        """

    async def list(self, prefix: str = "") -> list[KeyedFile]:
        """Those under this key and under keys that have it before a slash, by their keys; all, where it is empty."""


RequestHandler: TypeAlias = Callable[[bytes], Awaitable[bytes]]
StopServing: TypeAlias = Callable[[], Awaitable[None]]


class Engine(Protocol):
    @property
    def clock(self) -> JournalClock:
        """By which records grow old."""

    @property
    def files(self) -> FileStore: ...

    async def append(self, *puts: NewRecord, settled: Sequence[SettledRecords] = ()) -> list[int]:
        """Append all or nothing, and return a sequence for each. A caller that is cancelled does not know which.

        With them those records get their limit that are `settled` by this. It takes up to MOST_AT_ONCE records; one
        that is larger than PART_BYTES counts once more for each such part of it.

        Raises:
            AppendSizeError: it is more than that, and nothing was written; `append_in_parts` may be the way.
            Duplicate: a message id is in the journal already. Looked for before a conflict: who tries again after a
                lost answer learns that it was done.
            Conflict: a subject's last sequence was not the expected one.
            EngineError: nothing was written, for instance because the disk is full.
        """

    async def last(self, subject: str, *, fresh: bool = True) -> Record | None:
        """`fresh` as in `read`."""

    async def read(self, pattern: str, after: int = 0, limit: int = 100, *, fresh: bool = True) -> list[Record]:
        """Reads what matches, in the order of the sequences, beginning behind `after`.

        It sees all whose append was acknowledged to anybody. Not `fresh`, it may see the journal as it was a moment
        ago, but with all that we ourselves have written or heard of, be it by a delivery, a tail, a message, a lease
        or a conflict. That is enough for who writes with `expect` afterwards, and for who looks since he was told to.

        Raises:
            RecordDamage: the disk has changed one of them.
        """

    async def purge(self, pattern: str, upto: int | None = None, after: int = 0) -> int:
        """Remove what matches, behind `after` and up to and with `upto`, and say how much it was.

        Sequences never return. Where servers keep the journal, what was given back with `nak` and has not come again
        may come after `ack_wait` alone.

        The oldest go first; a crash in the middle leaves the rest. Message ids go with their records.
        """

    async def consumer(self, spec: ConsumerSpec) -> Consumer:
        """Returns the durable consumer of this name, made where there is none, its settings brought up to date.

        New patterns hold from the oldest record that still waits to be delivered the first time; where none waits,
        from now on.
        """

    async def consumers(self) -> list[str]:
        """The names of all consumers."""

    async def forget_consumer(self, name: str) -> None:
        """Removes a consumer and its backlog; a fetch from it is an EngineError."""

    async def depth(self, name: str) -> int:
        """Counts what a consumer has before it: pending and in flight. 0 where there is no such consumer.

        Where servers keep the journal, it may count a moment late what was just appended, and too much until that is
        reached where something was purged.
        """

    async def list_owed(self, name: str, until: float, after: int = 0, limit: int = 100) -> list[Record]:
        """What a consumer has before it, of what was appended before `until` and lies behind `after`, in order.

        Pending and in flight: it is not handed out by this. Nothing where there is no such consumer. An engine that
        knows only up to where all was acknowledged names some that were, behind one that was not.
        """

    async def lease(self, key: str, holder: str, ttl: float = 10.0) -> Lease | None:
        """Takes the lease on a key; None while another holds it. Its holder gets it anew, and the older one ends."""

    async def holder(self, key: str) -> str | None: ...

    async def holders(self, beginning: str) -> dict[str, str]:
        """Who holds the leases whose keys begin so, by their keys."""

    async def publish(self, subject: str, data: bytes, *, version: int = 1) -> None:
        """Live only, to whoever listens at this moment.

        `version`: what it takes to read it, raised where a form changes that gateways of the release before know. A
        gateway that cannot read it passes it over, and says so.
        """

    async def request(self, subject: str, data: bytes, timeout: float, *, version: int = 1) -> bytes:
        """Publish, and wait for the one answer of whoever serves the subject, in the version that was asked in.

        An asker that gives up does not stop the one that answers.

        Raises:
            TimeoutError: nobody serves the subject, or no answer came in time.
            EngineError: the one that answers failed, or is a gateway that cannot read what it is asked.
        """

    async def serve(self, subject: str, answer: RequestHandler) -> StopServing:
        """Answer requests on a subject until the returned function is called; one at a time may serve it."""

    async def tail(self, *patterns: str) -> Tail:
        """Live records, appended (with their sequence) and published (sequence 0); a slow reader loses the oldest."""

    async def health(self) -> EngineHealth:
        """Answers whatever has become of the disk."""

    def failure(self) -> str:
        """Why nothing can be written, where that does not pass by itself (it is damaged, the disk is gone); else "".

        Whoever waits for a record need not wait any more. A full disk is no such failure.
        """

    async def close(self) -> None:
        """Write what was handed over, and end; further calls of close do nothing."""


def count_parts(put: NewRecord) -> int:
    """For how many a record counts in an append."""
    size = len(put.data)
    return 1 if size <= PART_BYTES else 1 + -(-size // PART_BYTES)


async def append_in_parts(engine: Engine, puts: Iterable[NewRecord]) -> list[int]:
    """Append however many, in their order; what breaks off in the middle leaves the first of them there."""
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
    """Append one after the other; None for each whose message id is in the journal already."""
    sequences: list[int | None] = []
    for put in puts:
        try:
            sequences += await engine.append(put)
        except Duplicate:
            sequences.append(None)
    return sequences


async def append_until_written(append: Callable[[], Awaitable[T]], what: str) -> T:
    """Do an append that must not be given up, since it says what was done: an ill journal is waited for.

    `what` waits, in words for the log.

    Raises:
        Conflict, Duplicate: these are answers, and no illness.
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
