"""Open a journal that NATS servers keep under the name of this gateway, and forget the former name of the gateway."""

import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio

from gateway.backup.shared_journal import JournalServers
from gateway.cluster.journal_copy import open_servers
from gateway.cluster.journal_lock import GLANCE, LEASE_SECONDS, NODES, NodeHome, describe_place, join_journal
from gateway.cluster.other_hooks import SharedHooks
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.daemon.journal import ReportWaiting, find_node, make_kept_name, read_kept_name
from gateway.engine.interface import Engine
from gateway.errors import EngineError
from gateway.hooks.places.switches import write_atomically

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_shared_journal(
    servers: JournalServers, home: Home, configuration: Configuration, report_waiting: ReportWaiting | None
) -> AsyncIterator[Engine]:
    """Open the journal of these servers beside other gateways.

    Raises:
        ConfigError: the client of NATS is not installed, or another home has a node of this name.
        EngineError: the journal cannot be opened.
    """
    node = find_home(home, configuration)
    async with (
        await open_servers(servers, takes_marked=True) as nats,
        join_journal(nats, node, report_waiting),
    ):
        if len(await nats.holders(NODES)) == 1:
            await nats.take_back()  # the deliveries of killed gateways: no other gateway works here now
        log.info("%s works on the journal at %s", node.name, configuration.settings.engine)
        yield nats


def find_home(home: Home, configuration: Configuration) -> NodeHome:
    """Return the name and place by which the other gateways of the journal know this gateway."""
    return NodeHome(find_node(home, configuration), describe_place(home.root))


async def forget_last_name(home: Home, configuration: Configuration, engine: Engine, others: SharedHooks) -> None:
    """Forget the hooks of this gateway under its former name, once they are written under its current name.

    If a lease of the former name exists, wait for its expiry; if it stays, another home has that name now.
    """
    address, node = configuration.settings.engine, find_node(home, configuration)
    former = find_last_name(home.node_name, home.root, address)
    if former == node:
        return
    if former:
        await others.told.wait()
    with suppress(EngineError, OSError):  # then the next start tries again
        if former and not await _is_held(engine, f"{NODES}{former}"):
            await others.forget(former)
            log.info("this gateway is %s now, and was %s", node, former)
        keep_name(home.node_name, home.root, address, node)


def find_last_name(path: Path, home: Path, engine: str) -> str:
    """Return the last name of this home on the journal `engine`; "" if the home had no name on it."""
    kept = read_kept_name(path, home)
    return kept.get("name", "") if kept.get("engine") == engine else ""


def keep_name(path: Path, home: Path, engine: str, name: str) -> None:
    kept = read_kept_name(path, home) or make_kept_name(home)
    write_atomically(path, json.dumps({**kept, "engine": engine, "name": name}).encode())


async def _is_held(engine: Engine, key: str) -> bool:
    """Return True if a lease is still held after the time in which a lease without renewals expires."""
    limit = time.monotonic() + 2 * LEASE_SECONDS
    while await engine.holder(key):
        if time.monotonic() > limit:
            return True
        await anyio.sleep(GLANCE)
    return False
