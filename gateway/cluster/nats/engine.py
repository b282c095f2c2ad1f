"""The journal on NATS servers: the `Engine` that the gateway uses."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Self, TypeVar

import msgspec
from msgspec.structs import replace

from gateway.cluster.nats.connection import (
    NO_MAJORITY,
    OLDEST_SERVER,
    Connection,
    ServerRefusal,
    open_connection,
)
from gateway.cluster.nats.consumer import NatsConsumer
from gateway.cluster.nats.files import NatsFiles
from gateway.cluster.nats.known_records import KnownRecords
from gateway.cluster.nats.leases import Leases
from gateway.cluster.nats.live import LiveSubjects
from gateway.cluster.nats.names import STREAM_NAME, Names, consumer_name_of
from gateway.cluster.nats.purges import Purges
from gateway.cluster.nats.record_reader import RecordReader
from gateway.cluster.nats.record_writer import RecordWriter, WriteRight, WriteRights
from gateway.cluster.nats.removals import Removals
from gateway.cluster.nats.stored_consumers import (
    count_owed,
    list_owed,
    make_consumer,
    read_consumer,
    restore_deliveries,
)
from gateway.cluster.nats.streams import JournalState, open_streams
from gateway.cluster.nats.whole_journal import NatsJournal
from gateway.cluster.stored_journal import parse_mark
from gateway.engine.interface import (
    ConsumerSpec,
    EngineHealth,
    Lease,
    NewRecord,
    Record,
    RequestHandler,
    SettledRecords,
    StopServing,
    Tail,
)
from gateway.engine.journal_clock import Clock, JournalClock
from gateway.engine.subjects import check_consumer_spec, check_new_records, check_pattern, check_subject
from gateway.errors import EngineError

DEFAULT_NAME = "hermes"
WINDOW_SECONDS = 120.0
CLOSE_SECONDS = 15.0
HEALTH_SECONDS = 2.0  # a health check that waits longer must report that no server answers
T = TypeVar("T")


class ServerState(msgspec.Struct, frozen=True):
    """The servers' own report: the largest message size, the states of the three streams, and the account."""

    max_payload: int
    streams: Sequence[Mapping[str, Any]]
    account: Mapping[str, Any]


async def open_nats(
    url: str,
    user: str = "",
    password: str = "",
    *,
    window: float = WINDOW_SECONDS,
    takes_marked: bool = False,
) -> "NatsEngine":
    """Open the journal at this address, or create it; the caller closes the engine, or uses it as a context manager.

    The address may name several servers, separated by commas, and the journal after a slash. `window` is how long the
    server remembers message ids across subjects; `takes_marked` also opens a journal with an unfinished migration.

    Raises:
        EngineError: no server answers, a server is too old, or the settings of its streams do not fit.
    """
    servers, name = split_address(url)
    connection = await open_connection(servers, user, password)
    engine = await open_on_connection(connection, Names(name), window)
    try:
        if not takes_marked:
            await engine.check_mark()
    except BaseException:
        await engine.close()
        raise
    return engine


async def open_on_connection(connection: Connection, names: Names, window: float) -> "NatsEngine":
    """Open the journal on a connection, and close the connection if that fails."""
    close = connection.close
    try:
        await connection.start()
        version = connection.client.connected_server_version
        if (version.major, version.minor) < OLDEST_SERVER:
            raise EngineError(
                f"the NATS server at {connection.url} is {version.major}.{version.minor}; "
                f"it takes {'.'.join(map(str, OLDEST_SERVER))} or newer"
            )
        state = await open_streams(connection, names, window)
        engine = NatsEngine(connection, names, state, window)
        close = engine.close
        await engine.start()
    except BaseException:
        await close()
        raise
    return engine


def split_address(url: str) -> tuple[str, str]:
    """Split an address into the servers and the journal's name; credentials of the first server apply to all."""
    scheme, separator, rest = url.partition("://")
    hosts, _, path = rest.replace(f"{scheme}://", "").partition("/")
    name = path.strip("/") or DEFAULT_NAME
    if not STREAM_NAME.fullmatch(name):
        raise EngineError(f"{name!r} is not a valid journal name: it takes letters, digits, '-' and '_', 32 at most")
    return ",".join(f"{scheme}{separator}{host}" for host in hosts.split(",")), name


class NatsEngine:
    """The journal on NATS. Create it by `open_nats`."""

    def __init__(self, connection: Connection, names: Names, state: JournalState, window: float) -> None:
        self.clock = JournalClock(Clock())
        self.files = NatsFiles(connection, names)
        self.append_numbered = None
        self._connection = connection
        self._names = names
        self._state = state
        self._window = window
        self._known, self._rights = KnownRecords(names), WriteRights()
        self._reader = RecordReader(connection, names, self._known, state.copies)
        self._writer = RecordWriter(connection, names, self._reader, self._rights)
        self._purges = Purges(connection, names, self._reader, self._rights)
        self._leases = Leases(connection, names)
        self._live = LiveSubjects(connection, names, self._reader, time.time)
        self._removals = Removals(connection, names, self._purges.purge, self._leases)
        self._consumers: dict[str, NatsConsumer] = {}
        self._writing: set[asyncio.Task[Any]] = set()
        self._running: list[asyncio.Task[None]] = []
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        await self._live.start()
        self._running = [asyncio.create_task(part.run()) for part in (self._live, self._removals)]

    async def read_mark(self) -> str:
        """Return the mark of a migration; "" if the journal has no mark."""
        return (await open_streams(self._connection, self._names, self._window)).mark

    async def check_mark(self) -> None:
        """Raise EngineError if a migration is unfinished, or has moved the journal away."""
        if mark := parse_mark(await self.read_mark()):
            raise EngineError(
                f"the journal {self._names.journal!r} on the NATS server is not for use: {mark.describe()}"
            )

    def get_journal(self) -> NatsJournal:
        """Return the journal for a migration to or from another engine."""
        return NatsJournal(self._connection, self._names, self._state.copies, self._window)

    async def append(self, *puts: NewRecord, settled: Sequence[SettledRecords] = ()) -> list[int]:
        check_new_records(puts)
        return await self._finish(partial(self._append, puts, settled))

    async def _append(self, puts: Sequence[NewRecord], settled: Sequence[SettledRecords]) -> list[int]:
        sequences = await self._writer.append(puts) if puts else []
        before = sequences[0] - 1 if sequences else self._known.seen
        for one in settled:
            limited = self._removals.limit(one, before)
            self._known.limit(limited)
            self._removals.note(limited)
        return sequences

    async def _finish(self, work: Callable[[], Awaitable[T]]) -> T:
        """Finish the work even if its caller is cancelled."""
        self._check_open()
        task = asyncio.ensure_future(work())
        self._writing.add(task)
        task.add_done_callback(self._note_written)
        return await asyncio.shield(task)

    def _note_written(self, task: asyncio.Task[Any]) -> None:
        self._writing.discard(task)
        if not task.cancelled():
            task.exception()  # without a waiting caller the error is of no interest

    async def last(self, subject: str, *, fresh: bool = True) -> Record | None:
        check_subject(subject)
        self._check_open()
        return await self._reader.last(subject, fresh=fresh)

    async def read(self, pattern: str, after: int = 0, limit: int = 100, *, fresh: bool = True) -> list[Record]:
        check_pattern(pattern)
        self._check_open()
        return await self._reader.read(pattern, after, limit, fresh=fresh)

    async def purge(self, pattern: str, upto: int | None = None, after: int = 0) -> int:
        check_pattern(pattern)
        return await self._finish(partial(self._purges.purge, pattern, upto, after))

    async def consumer(self, spec: ConsumerSpec) -> NatsConsumer:
        check_consumer_spec(spec)
        self._check_open()
        await make_consumer(self._connection, self._reader, spec)
        made = self._consumers.get(spec.name)
        if made is not None and made.is_forgotten:  # another gateway has removed the consumer
            await made.end()
            made = None
        if made is None:
            made = self._consumers[spec.name] = NatsConsumer(self._connection, self._reader, spec)
        made.spec = spec
        made.wake()
        return made

    async def consumers(self) -> list[str]:
        self._check_open()
        names: list[str] = []
        while True:
            page = await self._call(f"CONSUMER.LIST.{self._names.stream}", offset=len(names))
            found = page.get("consumers") or []
            names += [one["config"].get("metadata", {}).get("name", one["name"]) for one in found]
            if not found or len(names) >= page["total"]:
                return names

    async def forget_consumer(self, name: str) -> None:
        self._check_open()
        if await read_consumer(self._connection, self._reader, name) is not None:
            await self._call(f"CONSUMER.DELETE.{self._names.stream}.{consumer_name_of(name)}")
        if consumer := self._consumers.pop(name, None):
            await consumer.end()

    async def depth(self, name: str) -> int:
        self._check_open()
        return await count_owed(self._connection, self._reader, name)

    async def list_owed(self, name: str, until: float, after: int = 0, limit: int = 100) -> list[Record]:
        self._check_open()
        return await list_owed(self._connection, self._reader, name, until, after, limit)

    def write_under(self, right: WriteRight) -> None:
        """Make writes wait for this right too, and fail once it is lost."""
        self._rights.append(right)

    async def take_back(self) -> None:
        """Make all unacknowledged deliveries due again. Call this method only if no other gateway uses the journal."""
        for name in await self.consumers():
            await restore_deliveries(self._connection, self._reader, name)

    async def lease(self, key: str, holder: str, ttl: float = 10.0) -> Lease | None:
        self._check_open()
        lease = await self._leases.take(key, holder, ttl)
        if lease:
            self._known.note(await self._reader.read_end())  # from here on our reads show the last holder's records
        return lease

    async def holder(self, key: str) -> str | None:
        self._check_open()
        return await self._leases.read_holder(key)

    async def holders(self, beginning: str) -> dict[str, str]:
        self._check_open()
        return await self._leases.read_holders(beginning)

    async def publish(self, subject: str, data: bytes, *, version: int = 1) -> None:
        self._check_open()
        await self._live.publish(subject, data, version)

    async def request(self, subject: str, data: bytes, timeout: float, *, version: int = 1) -> bytes:
        self._check_open()
        return await self._live.request(subject, data, timeout, version)

    async def serve(self, subject: str, answer: RequestHandler) -> StopServing:
        self._check_open()
        return await self._live.serve(subject, answer)

    async def tail(self, *patterns: str) -> Tail:
        self._check_open()
        return await self._live.tail(*patterns)

    async def health(self) -> EngineHealth:
        self._check_open()
        if why := self._connection.disconnection.describe():
            return EngineHealth(False, why)
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                records, files = await self._read_streams(self._names.stream, self._names.files)
        except TimeoutError:  # a server that lost the others may not answer at all
            silent = f"the NATS server at {self._connection.url} does not answer within {HEALTH_SECONDS:g} s"
            return EngineHealth(False, NO_MAJORITY if self._state.copies > 1 else silent)
        except EngineError as error:
            return EngineHealth(False, str(error))
        left = self._live.too_new.describe()
        health = EngineHealth(
            True,
            "well",
            int(records["state"]["messages"]),
            int(records["state"]["bytes"]),
            file_size=int(files["state"]["bytes"]),
            warnings=(f"what gateways say to each other: {left}",) if left else (),
        )
        if records.get("cluster") and not records["cluster"].get("leader"):
            return replace(health, ok=False, detail=NO_MAJORITY)  # such servers may also answer
        if failure := self._rights.failure:
            return replace(health, ok=False, detail=failure)
        return health

    async def inspect(self) -> ServerState:
        """Return the servers' own report."""
        streams = await self._read_streams(self._names.stream, self._names.keys, self._names.files)
        return ServerState(self._connection.client.max_payload, streams, await self._call("INFO"))

    async def _read_streams(self, *names: str) -> list[dict[str, Any]]:
        return list(await asyncio.gather(*(self._call(f"STREAM.INFO.{name}") for name in names)))

    def failure(self) -> str:
        return self._connection.disconnection.describe() if self._connection.disconnection.is_lasting else ""

    async def _call(self, verb: str, **body: Any) -> dict[str, Any]:
        try:
            return await self._connection.call(verb, **body)
        except ServerRefusal as refusal:
            raise EngineError(f"the NATS server refuses {verb}: {refusal}") from refusal

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for task in self._running:
            task.cancel()
        if self._writing:
            await asyncio.wait(set(self._writing), timeout=CLOSE_SECONDS)
        with suppress(EngineError):
            await self._removals.write()
        if self._connection.client.is_connected:
            await asyncio.gather(*(consumer.return_arrived() for consumer in self._consumers.values()))
        await self._connection.close()
        self._live.end()
        for consumer in self._consumers.values():
            consumer.wake()

    def _check_open(self) -> None:
        if self._is_closed:
            raise EngineError("the journal is closed")
