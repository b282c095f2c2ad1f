"""The journal of a gateway: a file in its home, or a journal on NATS servers that several gateways share."""

import json
import logging
import secrets
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio

from gateway.agent.libraries import describe_install, is_installed
from gateway.backup.shared_journal import find_servers, open_servers
from gateway.cluster.journal_lock import (
    GLANCE,
    LEASE_SECONDS,
    NODES,
    NodeHome,
    ReportWaiting,
    describe_place,
    join_journal,
)
from gateway.cluster.other_hooks import OtherHooks
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.engine.interface import Engine
from gateway.engine.sqlite.engine import open_sqlite
from gateway.engine.sqlite.journal_end import write_missing_end
from gateway.errors import EngineError
from gateway.files.folders import read_plain_file
from gateway.hooks.folders.switches import write_atomically
from gateway.sessions.search_index import read_index_end
from gateway.yaml_source.tree import Finding, SourceLocation

CLIENT = "nats"
LETTERS = "abcdefghijklmnopqrstuvwxyz"

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_journal(
    home: Home, configuration: Configuration, report_waiting: ReportWaiting | None
) -> AsyncIterator[Engine]:
    """Open the journal; `report_waiting` receives the reason of a delay again and again.

    Raises:
        ConfigError: the client of NATS is not installed, or another home has a node of this name.
        EngineError: the journal cannot be opened.
    """
    settings = configuration.settings
    servers = find_servers(configuration)
    if servers is None:
        write_missing_end(home.journal, partial(read_index_end, home.search))
        async with await open_sqlite(home.journal, max_bytes=settings.journal.max_size or None) as engine:
            yield engine
        return
    node = find_home(home, configuration)
    async with (
        await open_servers(servers, takes_marked=True) as nats,
        join_journal(nats, node, report_waiting),
    ):
        if len(await nats.holders(NODES)) == 1:
            await nats.take_back()  # the deliveries of a killed gateway: no other process works here now
        log.info("%s works on the journal at %s", node.name, settings.engine)
        yield nats


def find_missing_client(configuration: Configuration) -> Iterator[Finding]:
    """Yield a finding if the journal is on NATS servers and their client is not installed."""
    if configuration.settings.engine and not is_installed(CLIENT):
        place = configuration.origins.get("engine") or SourceLocation("engine")
        yield Finding(place, "engine: NATS servers are to keep the journal", describe_install(CLIENT))


def find_home(home: Home, configuration: Configuration) -> NodeHome:
    """Describe this gateway for the others on its journal."""
    return NodeHome(find_node(home, configuration), describe_place(home.root))


def find_node(home: Home, configuration: Configuration) -> str:
    """Return the name of this gateway: the one that is set, or one that belongs to its home.

    One process serves a home. After a crash the next one has the same name, so it continues the turns at once.
    """
    return configuration.settings.node.name or find_node_name(home.node_name, home.root)


def find_node_name(path: Path, home: Path) -> str:
    """Return the name of the host and four letters, which are made once for a home and kept in `path`.

    A copy of a home is another home, with letters of its own.
    """
    kept = _read_kept(path, home)
    if not kept:
        kept = _make_kept(home)
        with suppress(OSError):  # a full disk: the next start makes another name
            write_atomically(path, json.dumps(kept).encode())
    return f"{socket.gethostname()}-{kept['letters']}"


def find_last_name(path: Path, home: Path, engine: str) -> str:
    """Return the last name of this home on that journal; an empty text if it has none."""
    kept = _read_kept(path, home)
    return kept.get("name", "") if kept.get("engine") == engine else ""


def keep_name(path: Path, home: Path, engine: str, name: str) -> None:
    kept = _read_kept(path, home) or _make_kept(home)
    write_atomically(path, json.dumps({**kept, "engine": engine, "name": name}).encode())


def _read_kept(path: Path, home: Path) -> dict[str, str]:
    """Read the kept name; an empty text if it belongs to another home."""
    try:
        kept = dict(json.loads(read_plain_file(path)))
    except (OSError, ValueError, TypeError):
        return {}
    return kept if kept.get("home") == str(home.resolve()) else {}


def _make_kept(home: Path) -> dict[str, str]:
    return {"home": str(home.resolve()), "letters": "".join(secrets.choice(LETTERS) for _ in range(4))}


async def forget_last_name(home: Home, configuration: Configuration, engine: Engine, others: OtherHooks) -> None:
    """Forget what this gateway wrote under its last name, once it has written the same under its present name.

    Wait for the lease of a killed gateway to end. If it does not end, another home has that name now.
    """
    address, node = configuration.settings.engine, find_node(home, configuration)
    former = find_last_name(home.node_name, home.root, address)
    if former == node:
        return
    if former:
        await others.told.wait()
    with suppress(EngineError, OSError):  # the next start forgets it
        if former and not await _is_held(engine, f"{NODES}{former}"):
            await others.forget(former)
            log.info("this gateway is %s now, and was %s", node, former)
        keep_name(home.node_name, home.root, address, node)


async def _is_held(engine: Engine, key: str) -> bool:
    """Tell if a process still renews the lease, after the time in which it would have ended."""
    limit = time.monotonic() + 2 * LEASE_SECONDS
    while await engine.holder(key):
        if time.monotonic() > limit:
            return True
        await anyio.sleep(GLANCE)
    return False
