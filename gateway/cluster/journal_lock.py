"""The lock on a journal that servers keep: all nodes share the lock, or one process has it alone for a migration.

A node has a lease of its own, and a migration the lease `exchange`. Each process takes its own lease before it looks
for the other kind. So if a node and a migration come at once, at least one sees the other: the node releases its lease
and stands by, and the migration waits until no node is left. A process that could not renew its lease in time writes
nothing until it has checked again, and the lease of a killed process expires.
"""

import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import anyio
import msgspec

from gateway.cluster.stored_journal import parse_mark
from gateway.daemon.journal import ReportWaiting
from gateway.daemon.shutdown import exit_now
from gateway.engine.interface import Engine, Lease
from gateway.errors import ConfigError, EngineError, ExitCode, NoRoom

if TYPE_CHECKING:
    from gateway.cluster.nats.engine import NatsEngine

NODES, EXCHANGE = "node.", "exchange"  # NODES starts the keys of the leases of nodes
LEASE_SECONDS = 8.0
RENEWAL_PAUSE = 2.0
GLANCE = 1.0  # between two checks whether a lease is free
RETURN_SECONDS = 15.0  # how long started work waits for absent servers

FindObstacle: TypeAlias = Callable[[], Awaitable[str]]

log = logging.getLogger(__name__)


class NodeHome(msgspec.Struct, frozen=True):
    """A gateway among those that share a journal: its name, and the unique place of its home."""

    name: str
    home: str

    def __str__(self) -> str:
        return f"{self.name} at {self.home}"


def describe_place(root: Path) -> str:
    """Describe the place of a home, for people on other hosts."""
    return f"{socket.gethostname()}:{root.resolve()}"


@asynccontextmanager
async def join_journal(
    engine: "NatsEngine", node: NodeHome, report: ReportWaiting | None = None
) -> AsyncIterator[None]:
    """Work on the journal beside other nodes inside the block; `report` gets each reason to wait.

    Raises:
        ConfigError: another home has a node of this name.
        EngineError: the journal was moved.
    """
    lease = await _take_node(engine, node, WaitReport(report))
    engine.write_under(lease)
    async with keep_lease(lease):
        await engine.check_mark()  # the journal may have been moved while we stood by
        yield


@asynccontextmanager
async def reserve_journal(engine: "NatsEngine", who: NodeHome, patience: float) -> "AsyncIterator[JournalLease]":
    """Keep all nodes off the journal inside the block. The call waits for the lease of a killed node to expire.

    Raises:
        EngineError: nodes remained for longer than LEASE_SECONDS and `patience`, or another migration runs.
    """
    limit = time.monotonic() + LEASE_SECONDS + patience
    while (lease := await try_lease(engine, EXCHANGE, str(who), _name_nodes)) is None:
        if time.monotonic() > limit:
            raise EngineError(f"{await engine.holder(EXCHANGE)} is at work on the journal already; wait for its end")
        await anyio.sleep(GLANCE)
    async with keep_lease(lease):
        nodes = await _wait_for_nodes(engine, limit)
        if not nodes:
            yield lease
    if nodes:
        names, verb = " and ".join(sorted(nodes)), "works" if len(nodes) == 1 else "work"
        raise EngineError(f"{names} {verb} on the journal; stop all gateways that share it first")


async def _wait_for_nodes(engine: Engine, limit: float) -> list[str]:
    """Wait for the nodes to leave, and return the nodes that are left at the limit."""
    while True:
        nodes = [*(await engine.holders(NODES)).values()]
        if not nodes or time.monotonic() > limit:
            return nodes
        await anyio.sleep(GLANCE)


@asynccontextmanager
async def keep_lease(lease: "JournalLease") -> AsyncIterator[None]:
    """Renew the lease inside the block, and release it at the end."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lease.keep)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised below: an error that leaves a task group becomes a group
            failure = error
        finally:
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await lease.release()
    if failure:
        raise failure


async def _find_nothing() -> str:
    return ""


async def try_lease(
    engine: Engine, key: str, holder: str, find_obstacle: FindObstacle = _find_nothing
) -> "JournalLease | None":
    """Take a lease; None if another holder has the key."""
    begun = time.monotonic()
    lease = await engine.lease(key, holder, LEASE_SECONDS)
    return JournalLease(engine, key, holder, lease, begun + LEASE_SECONDS, find_obstacle) if lease else None


class WaitReport(msgspec.Struct, eq=False):
    """Reports the reason to wait: to the log once, and to `report` repeatedly."""

    _report: ReportWaiting | None
    _told: str = ""

    def tell(self, why: str) -> None:
        """Report the reason; if `why` is empty, repeat the last reason."""
        if why and why != self._told:
            log.info("%s", why)
            self._told = why
        if self._report:
            self._report(self._told)


class JournalLease:
    """A lease that `keep` renews while the servers answer.

    After the lease ran out, because the servers were away or this process hung, `find_obstacle` returns the reason why
    this process may not take it again, or "".
    """

    def __init__(
        self, engine: Engine, key: str, holder: str, lease: Lease, until: float, find_obstacle: FindObstacle
    ) -> None:
        self._engine = engine
        self._key, self._holder = key, holder
        self._lease = lease
        self._until = until  # no other process has the lease before
        self._find_obstacle = find_obstacle
        self._failure = ""  # of the last renewal

    @property
    def is_certain(self) -> bool:
        """True if no other process can have the lease now."""
        return time.monotonic() < self._until

    @property
    def failure(self) -> str:
        """The reason why the lease may not be ours; "" if the servers give no reason."""
        return "" if self.is_certain else self._failure

    async def wait(self) -> None:
        """Wait until the lease is certainly ours; servers that were away must confirm it.

        Raises:
            EngineError: the servers did not confirm the lease in time.
        """
        limit = time.monotonic() + RETURN_SECONDS
        while not self.is_certain:
            if time.monotonic() > limit:
                silent = "the NATS servers do not say whether the journal is still ours to write"
                raise EngineError(self._failure or silent)
            await anyio.sleep(0.05)

    async def keep(self) -> None:
        """Renew the lease for ever; end this gateway if it has lost the journal: other nodes do its pending work."""
        while True:
            await anyio.sleep(RENEWAL_PAUSE)
            begun = time.monotonic()
            try:
                if why := await self._renew():
                    exit_now(ExitCode.RESTART, f"has lost the journal to {why}")
            except NoRoom as error:
                self._failure = str(error)
            except EngineError:
                self._failure = ""
            else:
                self._until, self._failure = begun + LEASE_SECONDS, ""

    async def _renew(self) -> str:
        """Renew the lease, or take it again after it ran out; return the obstacle, or ""."""
        if await self._lease.renew():
            return ""
        lease = await self._engine.lease(self._key, self._holder, LEASE_SECONDS)
        if lease is None:
            return await self._engine.holder(self._key) or "somebody else"
        self._lease = lease
        return await self._find_obstacle()

    async def release(self) -> None:
        with suppress(EngineError):
            await self._lease.release()


async def _take_node(engine: "NatsEngine", node: NodeHome, report: WaitReport) -> JournalLease:
    """Take this node's lease once no migration runs and the servers answer.

    Raises:
        ConfigError: another home has a node of this name, for longer than a lost lease of ours could last.
    """
    key, twin_since = f"{NODES}{node.name}", 0.0

    async def find_obstacle() -> str:
        mark = parse_mark(await engine.read_mark())
        return await engine.holder(EXCHANGE) or (mark.where if mark else "")

    while True:
        why = ""
        try:
            holder = await engine.holder(EXCHANGE)
            if holder is None and (lease := await try_lease(engine, key, str(node), find_obstacle)):
                if (holder := await engine.holder(EXCHANGE)) is None:
                    return lease
                await lease.release()
            if holder:
                why = f"on standby: {holder} migrates the journal"
            elif twin := await engine.holder(key):
                why, twin_since = f"on standby: the name {node.name} is that of {twin}", twin_since or time.monotonic()
                if time.monotonic() > twin_since + LEASE_SECONDS + GLANCE:
                    raise ConfigError(
                        f"another gateway on this journal is called {node.name!r} too: {twin}\n"
                        f"give this one, at {node.home}, a name of its own in config.yaml: node: {{name: …}}"
                    )
        except EngineError as error:
            why = f"on standby: {error}"
        report.tell(why)
        await anyio.sleep(GLANCE)


async def _name_nodes() -> str:
    return "the nodes, which may have come while it was not held"
