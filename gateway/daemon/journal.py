"""The journal of a gateway: the file in its home, or one that NATS servers keep for several gateways.

Of those, one works on it at a time: the one that holds its lease. The others stand by, and the first of them to find it
free goes on with what is owed. Whoever lost the lease writes nothing more and ends at once: another one goes on.
"""

import json
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio

from gateway.agent.libraries import describe_install, is_installed
from gateway.backup.shared_journal import find_servers, open_servers
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.daemon.journal_lock import (
    GLANCE,
    JournalLease,
    NodeHome,
    ReportWaiting,
    WaitReport,
    describe_place,
    join_journal,
    keep_lease,
    try_lease,
)
from gateway.engine import Engine, open_sqlite
from gateway.errors import EngineError
from gateway.hooks.folders.switches import write_atomically
from gateway.yaml_source import Finding, SourceLocation

CLIENT = "nats"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LEASE = "gateway"

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_journal(
    home: Home, configuration: Configuration, report_waiting: ReportWaiting | None
) -> AsyncIterator[Engine]:
    """The journal, for us to work on; `report_waiting` is told who does, again and again while somebody else does.

    Raises:
        ConfigError: the client of NATS is not installed, or another home has a node of this name.
        EngineError: it cannot be opened.
    """
    settings = configuration.settings
    servers = find_servers(configuration)
    if servers is None:
        async with await open_sqlite(home.journal, max_bytes=settings.journal.max_size or None) as engine:
            yield engine
        return
    node = find_home(home, configuration)
    async with (
        await open_servers(servers, takes_marked=True) as nats,
        join_journal(nats, node, report_waiting),
    ):
        lease = await take_lease(nats, node.name, report_waiting)
        nats.write_under(lease)
        async with keep_lease(lease):
            await nats.take_back()
            log.info("%s works on the journal at %s", node.name, settings.engine)
            yield nats


def find_missing_client(configuration: Configuration) -> Iterator[Finding]:
    """NATS servers are to keep the journal, and what speaks with them is not installed: the gateway does not start."""
    if configuration.settings.engine and not is_installed(CLIENT):
        place = configuration.origins.get("engine") or SourceLocation("engine")
        yield Finding(place, "engine: NATS servers are to keep the journal", describe_install(CLIENT))


async def take_lease(engine: Engine, name: str, report_waiting: ReportWaiting | None) -> JournalLease:
    """Stand by until nobody else works on the journal; servers that are away are waited for."""
    report = WaitReport(report_waiting)
    while True:
        why = ""
        try:
            if lease := await try_lease(engine, LEASE, name):
                return lease
            if holder := await engine.holder(LEASE):
                why = f"stands by: {holder} works on the journal"
        except EngineError as error:
            why = f"stands by: {error}"
        report.tell(why)
        await anyio.sleep(GLANCE)


def find_home(home: Home, configuration: Configuration) -> NodeHome:
    """This gateway, as the others that share its journal know it."""
    return NodeHome(find_node(home, configuration), describe_place(home.root))


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
