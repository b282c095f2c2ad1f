"""Check that NATS servers keep a journal as required, by their answers to a client and to a monitor.

Only a monitor shows whether a server writes to the disk before it confirms. The monitors' addresses come from
`NATS_MONITOR`, or else are the usual port of each named server. A monitor that does not answer is a fault only if its
address was configured.
"""

import json
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio

from gateway.backup.shared_journal import JournalServers
from gateway.cluster.journal_copy import open_servers
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.daemon.journal import find_missing_client
from gateway.errors import EngineError, GatewayError
from gateway.yaml_source.tree import Finding, SourceLocation

MONITOR = "NATS_MONITOR"
USUAL_PORT = 8222
PATIENCE = 2.0
MOST_BYTES = 1_000_000
FULL_SHARE = 0.9
SERVERS_WANTED = 3


class ServerFault(NamedTuple):
    """A fault of the servers, and its remedy."""

    what: str
    remedy: str
    is_grave: bool = False


def check_servers(home: Home, configuration: Configuration, servers: JournalServers) -> Iterator[Finding]:
    """Check that the servers answer, and keep a journal as a gateway needs it."""
    place = configuration.origins.get("engine") or SourceLocation(str(home.config))
    if home.journal.exists():
        what = f"{home.journal} is not taken along: the servers keep the journal"
        remedy = "where they hold none yet, take it along: hermes-gateway migrate --to nats; else move it away"
        yield Finding(place, what, remedy, "warning")
    if missing := [*find_missing_client(configuration)]:
        yield from missing
        return
    try:
        for fault in anyio.run(probe_servers, servers, configuration.environ.get(MONITOR, "")):
            yield Finding(place, fault.what, fault.remedy, "error" if fault.is_grave else "warning")
    except GatewayError as error:
        what, _, remedy = str(error).partition("\n")
        yield Finding(place, what, remedy or "see docs/cluster.md")


async def probe_servers(servers: JournalServers, monitors: str) -> list[ServerFault]:
    """Check the servers; `monitors` are configured addresses.

    Raises:
        EngineError: no server answers, or the servers' data cannot be a journal.
    """
    async with await open_servers(servers) as engine:
        health = await engine.health()
        if not health.ok:
            raise EngineError(health.detail)
        told = await engine.inspect()
    named = len(servers.url.split(","))
    return [
        *_check_cluster(told.streams, named),
        *_check_room("the account on the NATS servers", told.account.get("storage", 0), _limit_of(told.account)),
        *(fault for stream in told.streams for fault in _check_stream_room(stream)),
        *_check_payload(told.max_payload),
        *(
            fault
            for address, is_named in _list_monitors(servers, monitors)
            for fault in _ask_monitor(address, is_named)
        ),
    ]


def _check_cluster(streams: Sequence[Mapping[str, Any]], named: int) -> Iterator[ServerFault]:
    """Check that enough servers keep a copy of the journal, and that all copies are current."""
    clusters = [stream.get("cluster", {}) for stream in streams]
    if "name" not in clusters[0] and named > 1:
        what = f"{named} servers are named, and the one that answers is in no cluster: it alone keeps the journal"
        yield ServerFault(what, "have them be one cluster: see docs/cluster.md")
    if "name" not in clusters[0]:
        return
    yield from _check_copies({stream["config"]["name"]: stream["config"]["num_replicas"] for stream in streams})
    if named < SERVERS_WANTED:
        what = f"`engine` names {named} of the servers of a cluster: where that is away, no gateway can start"
        yield ServerFault(what, "name three: engine: nats://ONE:4222,TWO:4222,THREE:4222")
    copies = [one for cluster in clusters for one in cluster.get("replicas") or ()]
    ill = {one["name"] for one in copies if not one["current"]}
    gone = {one["name"] for one in copies if one.get("offline")}
    for name in sorted(ill | gone):
        how = "is not there" if name in gone else "is behind"
        yield ServerFault(f"the server {name} {how}: the journal has a copy less", "look at that server")


def _check_copies(copies: Mapping[str, int]) -> Iterator[ServerFault]:
    """Check that each stream has enough copies."""
    for name in [name for name, count in copies.items() if count < SERVERS_WANTED]:
        what = f"{copies[name]} of the servers keep the stream {name!r}: if one is lost, the stream is lost or stops"
        yield ServerFault(what, f"have three servers; nats stream edit {name} --replicas 3")


def _limit_of(account: Mapping[str, Any]) -> int:
    return int(account.get("limits", {}).get("max_storage", -1))


def _check_stream_room(stream: Mapping[str, Any]) -> Iterator[ServerFault]:
    config = stream["config"]
    name, what = config["name"], "file" if config["name"].endswith("-files") else "message"
    yield from _check_room(f"the stream {name!r}", stream["state"]["bytes"], config["max_bytes"], what)


def _check_room(where: str, used: int, limit: int, kept: str = "message") -> Iterator[ServerFault]:
    if limit > 0 and used > FULL_SHARE * limit:
        remedy = "raise that limit" if kept == "file" else "raise that limit, or have less kept: journal.retention"
        yield ServerFault(f"{where} has {used} bytes of {limit}; full, no {kept} is taken", remedy, is_grave=True)


def _check_payload(largest: int) -> Iterator[ServerFault]:
    """Check the largest message that the servers take; their default is one MiB."""
    if largest < 1024 * 1024:
        what = f"the NATS server takes messages of {largest} bytes at most; longer texts may not go through"
        yield ServerFault(what, "leave max_payload out of nats.conf")


def _list_monitors(servers: JournalServers, named: str) -> Iterator[tuple[str, bool]]:
    """Return the monitors' addresses, each with True if it was configured."""
    if named:
        yield from ((address.strip().rstrip("/"), True) for address in named.split(","))
        return
    for server in servers.url.split(","):
        host = urlsplit(server if "//" in server else f"nats://{server}").hostname
        yield f"http://{host}:{USUAL_PORT}", False


def _ask_monitor(address: str, is_named: bool) -> Iterator[ServerFault]:
    try:
        if not address.startswith(("http://", "https://")):
            raise ValueError("it is not an address of the form http://HOST:8222")
        with urllib.request.urlopen(f"{address}/varz", timeout=PATIENCE) as answer:  # noqa: S310 - checked: http
            told = json.loads(answer.read(MOST_BYTES))
        server, jetstream = told["server_name"], told["jetstream"]
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        if is_named:
            what = f"the monitor of a NATS server at {address} cannot be read: {error}"
            yield ServerFault(what, f"set {MONITOR} to where it is, or leave it out")
        return
    if not (kept := jetstream.get("config")):
        remedy = "see its log: a full disk switches it off; make room there, and start that server again"
        yield ServerFault(f"JetStream is off on the NATS server {server}: it keeps no copy", remedy)
        return
    if not kept.get("sync_always"):
        seconds = int(kept.get("sync_interval", 0)) // 1_000_000_000
        what = f"the NATS server {server} writes to its disk every {seconds} s: lost power loses what was acknowledged"
        yield ServerFault(what, "set in its nats.conf: jetstream { sync_interval: always }")
    used = int(jetstream.get("stats", {}).get("storage", 0))
    yield from _check_room(f"JetStream on the NATS server {server}", used, int(kept.get("max_storage", -1)))
