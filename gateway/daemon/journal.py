"""The journal of a gateway: the file in its home, or one that NATS servers keep for several gateways.

Of those, one works on it at a time: the one that holds its lease. The others stand by, and the first of them to find it
free goes on with what is owed. Whoever lost the lease writes nothing more and ends at once: another one goes on.
"""

import json
import logging
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import anyio

from gateway.agent.libraries import describe_install, is_installed
from gateway.backup.shared_journal import find_servers, open_servers
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.daemon.shutdown import exit_now
from gateway.engine import Engine, open_sqlite
from gateway.engine.interface import Lease
from gateway.errors import EngineError, ExitCode
from gateway.hooks.folders.switches import write_atomically
from gateway.yaml_source import Finding, SourceLocation

CLIENT = "nats"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LEASE = "gateway"
LEASE_SECONDS = 8.0
RENEWAL_PAUSE = 2.0
GLANCE = 1.0  # between two looks at whether the journal has become free
RETURN_SECONDS = 15.0  # what was begun waits so long for servers that are away

log = logging.getLogger(__name__)

ReportWaiting: TypeAlias = Callable[[str], None]


@asynccontextmanager
async def open_journal(
    home: Home, configuration: Configuration, report_waiting: ReportWaiting | None
) -> AsyncIterator[Engine]:
    """The journal, for us to work on; `report_waiting` is told who does, again and again while somebody else does.

    Raises:
        ConfigError: the client of NATS is not installed.
        EngineError: it cannot be opened.
    """
    settings = configuration.settings
    servers = find_servers(configuration)
    if servers is None:
        async with await open_sqlite(home.journal, max_bytes=settings.journal.max_size or None) as engine:
            yield engine
        return
    name = find_node(home, configuration)
    async with await open_servers(servers) as nats:
        lease = await take_lease(nats, name, report_waiting)
        nats.write_under(lease)
        async with keep_lease(lease):
            await nats.check_mark()  # while we stood by it may have been taken elsewhere
            await nats.take_back()
            log.info("%s works on the journal at %s", name, settings.engine)
            yield nats


@asynccontextmanager
async def keep_lease(lease: "JournalLease") -> AsyncIterator[None]:
    """It is renewed until this is left, and given up then."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lease.keep)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await lease.release()


def find_missing_client(configuration: Configuration) -> Iterator[Finding]:
    """NATS servers are to keep the journal, and what speaks with them is not installed: the gateway does not start."""
    if configuration.settings.engine and not is_installed(CLIENT):
        place = configuration.origins.get("engine") or SourceLocation("engine")
        yield Finding(place, "engine: NATS servers are to keep the journal", describe_install(CLIENT))


async def take_lease(engine: Engine, name: str, report_waiting: ReportWaiting | None) -> "JournalLease":
    """Stand by until nobody else works on the journal; servers that are away are waited for."""
    told = ""
    while True:
        begun, why = time.monotonic(), ""
        try:
            if lease := await engine.lease(LEASE, name, LEASE_SECONDS):
                return JournalLease(engine, name, lease, begun + LEASE_SECONDS)
            if holder := await engine.holder(LEASE):
                why = f"stands by: {holder} works on the journal"
        except EngineError as error:
            why = f"stands by: {error}"
        if why and why != told:
            log.info("%s", why)
            told = why
        if report_waiting:
            report_waiting(told)
        await anyio.sleep(GLANCE)


def find_node(home: Home, configuration: Configuration) -> str:
    """How this gateway is called: as it is set, or by a name of its home's own.

    One process serves a home. So after a crash the next one has the same name, and goes on at once with its turns.
    """
    return configuration.settings.node.name or find_node_name(home.node_name, home.root)


def find_node_name(path: Path, home: Path) -> str:
    """The host's and four letters, which are made once for the home and kept in `path`.

    A copy of a home is another home: it has letters of its own.
    """
    where = str(home.resolve())
    try:
        kept = json.loads(path.read_text())
    except (OSError, ValueError):
        kept = {}
    if kept.get("home") != where:
        kept = {"home": where, "letters": "".join(secrets.choice(LETTERS) for _ in range(4))}
        with suppress(OSError):  # the disk is full: the next start makes another name
            write_atomically(path, json.dumps(kept).encode())
    return f"{socket.gethostname()}-{kept['letters']}"


class JournalLease:
    """The lease on the journal, renewed as long as the servers are there; made by `take_lease`."""

    def __init__(self, engine: Engine, name: str, lease: Lease, until: float) -> None:
        self._engine = engine
        self._name = name
        self._lease = lease
        self._until = until  # nobody else has it before

    @property
    def is_certain(self) -> bool:
        """Asks whether nobody else can have it now."""
        return time.monotonic() < self._until

    async def wait(self) -> None:
        """Until it is ours for certain; servers that were away have to say so first.

        Raises:
            EngineError: they did not within the time.
        """
        limit = time.monotonic() + RETURN_SECONDS
        while not self.is_certain:
            if time.monotonic() > limit:
                raise EngineError("the NATS servers do not say whether the journal is still ours to write")
            await anyio.sleep(0.05)

    async def keep(self) -> None:
        """Renew it for ever; where somebody else took it, end: what is owed is theirs."""
        while True:
            await anyio.sleep(RENEWAL_PAUSE)
            begun = time.monotonic()
            with suppress(EngineError):
                if not await self._renew():
                    exit_now(ExitCode.RESTART, f"has lost the journal to {await self._engine.holder(LEASE)}")
                self._until = begun + LEASE_SECONDS

    async def _renew(self) -> bool:
        """Where it ran out, for instance because the servers were away, it is taken anew if nobody else did."""
        if await self._lease.renew():
            return True
        lease = await self._engine.lease(LEASE, self._name, LEASE_SECONDS)
        self._lease = lease or self._lease
        return lease is not None

    async def release(self) -> None:
        with suppress(EngineError):
            await self._lease.release()
