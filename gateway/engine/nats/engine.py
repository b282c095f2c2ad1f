"""The journal on NATS: the face that the gateway sees."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

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
from gateway.engine.nats.connection import (
    NO_CONSUMER,
    OLDEST_SERVER,
    Connection,
    ServerRefusal,
    open_connection,
)
from gateway.engine.nats.consumer import (
    BEGINNING,
    NatsConsumer,
    describe_consumer,
    has_config,
    restore_delivery,
)
from gateway.engine.nats.files import NatsFiles
from gateway.engine.nats.known_records import KnownRecords
from gateway.engine.nats.leases import Leases
from gateway.engine.nats.live import LiveSubjects
from gateway.engine.nats.names import STREAM_NAME, Names, consumer_name_of
from gateway.engine.nats.purges import Purges
from gateway.engine.nats.record_reader import RecordReader
from gateway.engine.nats.record_writer import RecordWriter, WriteRight
from gateway.engine.nats.removals import Removals
from gateway.engine.nats.streams import open_streams
from gateway.engine.nats.whole_journal import NatsJournal
from gateway.engine.stored_journal import parse_mark
from gateway.engine.subjects import check_consumer_spec, check_new_records, check_pattern, check_subject
from gateway.errors import EngineError

DEFAULT_NAME = "hermes"
WINDOW_SECONDS = 120.0
CLOSE_SECONDS = 15.0
HEALTH_SECONDS = 2.0  # who asks how it fares waits for it, and is to hear also that nobody answers
NO_MAJORITY = "the NATS servers take nothing: more than half of them must be there, and agree on one that leads"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerState:
    """As they say it: the largest message, the streams of records, of keys and of files, and the account."""

    max_payload: int
    streams: Sequence[Mapping[str, Any]]
    account: Mapping[str, Any]


async def open_nats(
    url: str,
    user: str = "",
    password: str = "",
    *,
    window: float = WINDOW_SECONDS,
    repeats: float = math.inf,
    takes_marked: bool = False,
) -> "NatsEngine":
    """Open the journal that the server of this address holds, or make it; close it, or use it as a context manager.

    The address may name several servers, with commas between, and behind a slash the journal. `window`: for how long
    the server knows the ids of messages of all subjects; `repeats`: for how long what is settled is kept at most.
    `takes_marked`: also one that a migration is not through with.

    Raises:
        EngineError: no server answers, it is too old, or keeps its streams otherwise than we need it.
    """
    servers, name = split_address(url)
    engine = NatsEngine(await open_connection(servers, user, password), Names(name), window, repeats)
    try:
        await engine.start()
        if not takes_marked:
            await engine.check_mark()
    except BaseException:
        await engine.close()
        raise
    return engine


def split_address(url: str) -> tuple[str, str]:
    """The servers, and the name of the journal; what the first one says before its host holds for them all."""
    scheme, separator, rest = url.partition("://")
    hosts, _, path = rest.replace(f"{scheme}://", "").partition("/")
    name = path.strip("/") or DEFAULT_NAME
    if not STREAM_NAME.fullmatch(name):
        raise EngineError(f"{name!r} is no name for a journal: it takes letters, digits, '-' and '_', 32 at most")
    return ",".join(f"{scheme}{separator}{host}" for host in hosts.split(",")), name


class NatsEngine:
    """Made by `open_nats`."""

    def __init__(self, connection: Connection, names: Names, window: float, repeats: float) -> None:
        self.clock = JournalClock(Clock())
        self.files = NatsFiles(connection, names)
        self._connection = connection
        self._names = names
        self._window = window
        self._known = KnownRecords(names)
        self._reader = RecordReader(connection, names, self._known)
        self._writer = RecordWriter(connection, names, self._reader)
        self._purges = Purges(connection, names, self._reader, self._writer.rights)
        self._leases = Leases(connection, names)
        self._live = LiveSubjects(connection, names, self._reader, time.time)
        self._removals = Removals(connection, names, self._purges, self._leases, repeats)
        self._consumers: dict[str, NatsConsumer] = {}
        self._writing: set[asyncio.Task[Any]] = set()
        self._running: list[asyncio.Task[None]] = []
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        await self._connection.start()
        version = self._connection.client.connected_server_version
        if (version.major, version.minor) < OLDEST_SERVER:
            raise EngineError(
                f"the NATS server at {self._connection.url} is {version.major}.{version.minor}; "
                f"it takes {'.'.join(map(str, OLDEST_SERVER))} or newer"
            )
        state = await open_streams(self._connection, self._names, self._window)
        self._reader.copies = state.copies
        await self._live.start()
        self._running = [asyncio.create_task(part.run()) for part in (self._live, self._removals)]

    async def read_mark(self) -> str:
        """What a migration wrote on the journal; "" where none did."""
        return (await open_streams(self._connection, self._names, self._window)).mark

    async def check_mark(self) -> None:
        """Raises EngineError where a migration is not through, or has taken the journal away."""
        if mark := parse_mark(await self.read_mark()):
            raise EngineError(
                f"the journal {self._names.journal!r} on the NATS server is not for use: {mark.describe()}"
            )

    def get_journal(self) -> NatsJournal:
        """By which it is taken along to another engine, or from one."""
        return NatsJournal(self._connection, self._names, self._reader, self._writer, self._window)

    def shards(self) -> Sequence[int]:
        return (0,)

    async def append(self, *puts: NewRecord, settled: Sequence[SettledRecords] = ()) -> list[int]:
        check_new_records(puts)
        return await self._finish(partial(self._append, puts, settled))

    async def _append(self, puts: Sequence[NewRecord], settled: Sequence[SettledRecords]) -> list[int]:
        sequences = await self._writer.append(puts) if puts else []
        settled = self._removals.limit(settled, sequences[0] - 1 if sequences else self._known.seen)
        for one in settled:
            self._known.limit(one)
        self._removals.note(settled)
        return sequences

    async def _finish(self, work: Callable[[], Awaitable[T]]) -> T:
        """What was begun is ended, whether its caller waits for it or not."""
        self._check_open()
        task = asyncio.ensure_future(work())
        self._writing.add(task)
        task.add_done_callback(self._note_written)
        return await asyncio.shield(task)

    def _note_written(self, task: asyncio.Task[Any]) -> None:
        self._writing.discard(task)
        if not task.cancelled():
            task.exception()  # where nobody waits for it any more, nobody need know

    async def last(self, subject: str, *, fresh: bool = True) -> Record | None:
        check_subject(subject)
        self._check_open()
        return await self._reader.last(subject, fresh=fresh)

    async def read(
        self, pattern: str, after: int = 0, limit: int = 100, *, upto: int | None = None, fresh: bool = True
    ) -> list[Record]:
        check_pattern(pattern)
        self._check_open()
        found = await self._reader.read(pattern, after, limit, fresh=fresh)
        return found if upto is None else [record for record in found if record.seq <= upto]

    async def purge(self, pattern: str, upto: int | None = None, after: int = 0) -> int:
        check_pattern(pattern)
        return await self._finish(partial(self._purges.purge, pattern, upto, after))

    async def consumer(self, spec: ConsumerSpec) -> NatsConsumer:
        check_consumer_spec(spec)
        self._check_open()
        name = consumer_name_of(spec.name)
        config = describe_consumer(self._names, spec)
        found = await self._read_consumer(name)
        if found is not None:
            config |= {key: found["config"][key] for key in BEGINNING if key in found["config"]}
        if found is None or not has_config(found["config"], config):
            where = f"CONSUMER.CREATE.{self._names.stream}.{name}"
            await self._call(where, stream_name=self._names.stream, config=config)
        made = self._consumers.get(spec.name)
        if made is not None and made.is_forgotten:  # by another gateway
            await made.end()
            made = None
        if made is None:
            made = self._consumers[spec.name] = NatsConsumer(self._connection, self._names, self._reader, spec)
        made.spec = spec
        made.wake()
        return made

    async def _read_consumer(self, name: str) -> dict[str, Any] | None:
        try:
            return await self._connection.call(f"CONSUMER.INFO.{self._names.stream}.{name}")
        except ServerRefusal as refusal:
            if refusal.number == NO_CONSUMER:
                return None
            raise EngineError(f"the NATS server cannot say how far a consumer is: {refusal}") from refusal

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
        if await self._read_consumer(consumer_name_of(name)) is not None:
            await self._call(f"CONSUMER.DELETE.{self._names.stream}.{consumer_name_of(name)}")
        if consumer := self._consumers.pop(name, None):
            await consumer.end()

    async def depth(self, name: str) -> int:
        self._check_open()
        found = await self._read_consumer(consumer_name_of(name))
        return 0 if found is None else int(found["num_pending"]) + int(found["num_ack_pending"])

    async def list_owed(self, name: str, until: float, after: int = 0, limit: int = 100) -> list[Record]:
        self._check_open()
        found = await self._read_consumer(consumer_name_of(name))
        if found is None:
            return []
        after = max(after, int(found["ack_floor"]["stream_seq"]))
        filters = found["config"].get("filter_subjects") or [found["config"]["filter_subject"]]
        owed: list[Record] = []
        for where in filters:
            owed += await self._reader.read_stored(where, after, limit)
        return [record for record in sorted(owed, key=lambda record: record.seq) if record.ts < until][:limit]

    def write_under(self, right: WriteRight) -> None:
        """Write only while we have this right, beside those of before."""
        self._writer.rights.append(right)

    async def take_back(self) -> None:
        """Have delivered again at once what is in anybody's hands: nobody else works on this journal any more."""
        for name in await self.consumers():
            found = await self._read_consumer(consumer_name_of(name))
            if found and found["num_ack_pending"]:
                for record in await self.list_owed(name, math.inf, limit=int(found["delivered"]["stream_seq"])):
                    await restore_delivery(
                        self._connection, self._names, name, record.seq, found["delivered"]["consumer_seq"]
                    )

    async def lease(self, key: str, holder: str, ttl: float = 10.0) -> Lease | None:
        self._check_open()
        lease = await self._leases.take(key, holder, ttl)
        if lease:
            self._known.note(await self._reader.read_end())  # what its last holder wrote is seen from here on
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
                stream = await self._call(f"STREAM.INFO.{self._names.stream}")
                files = (await self._call(f"STREAM.INFO.{self._names.files}"))["state"]
        except TimeoutError:  # one of several that is left alone may say nothing at all
            silent = f"the NATS server at {self._connection.url} does not answer within {HEALTH_SECONDS:g} s"
            return EngineHealth(False, NO_MAJORITY if self._reader.copies > 1 else silent)
        except EngineError as error:
            return EngineHealth(False, str(error))
        state, cluster = stream["state"], stream.get("cluster")
        left = self._live.too_new.describe()
        health = EngineHealth(
            True,
            "well",
            int(state["messages"]),
            int(state["bytes"]),
            file_size=int(files["bytes"]),
            warnings=(f"what gateways say to each other: {left}",) if left else (),
        )
        if cluster and not cluster.get("leader"):  # it may also answer all the same
            return replace(health, ok=False, detail=NO_MAJORITY)
        return health

    async def inspect(self) -> ServerState:
        """What the servers say of themselves to a client."""
        names = (self._names.stream, self._names.keys, self._names.files)
        streams = [await self._call(f"STREAM.INFO.{name}") for name in names]
        return ServerState(self._connection.client.max_payload, streams, await self._call("INFO"))

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
