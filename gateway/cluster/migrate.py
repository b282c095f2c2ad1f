"""`hermes-gateway migrate`: move the journal from the home to the NATS servers, or back.

The command may be interrupted at any moment and run again. On the way to the servers, their journal has a mark until
the copy is complete and the file is set aside, so that no gateway starts with an incomplete journal. On the way back,
the servers' journal is marked as moved before the file gets its name.
"""

import argparse
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import msgspec

from gateway.adapters.shared.folder import load_settings_schema
from gateway.backup.shared_journal import JournalServers, find_servers
from gateway.cli.backup import remove_search_index
from gateway.cli.output import show_progress, show_result
from gateway.cluster.files import SharedFiles
from gateway.cluster.folders import fetch_files
from gateway.cluster.journal import find_home
from gateway.cluster.journal_copy import open_servers
from gateway.cluster.journal_lock import JournalLease, NodeHome, describe_place, reserve_journal
from gateway.cluster.sqlite_journal import make_journal_file, open_journal_file
from gateway.cluster.stored_journal import (
    FILLED,
    FILLING,
    MOVED,
    JournalDigest,
    Mark,
    StoredConsumer,
    StoredRecord,
    check_same,
    parse_mark,
)
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import load_configuration
from gateway.daemon.home_lock import reserve_home
from gateway.engine.sqlite.backup import verify_journal
from gateway.engine.sqlite.journal_file import set_aside, sync
from gateway.errors import ConfigError, EngineError
from gateway.yaml_source.units import format_count

if TYPE_CHECKING:
    from gateway.cluster.nats.engine import NatsEngine
    from gateway.cluster.nats.whole_journal import NatsJournal

PATIENCE = 5.0


class JournalCopy(msgspec.Struct):
    """The facts about one migration: its places, its progress, and the copied data."""

    home: Home
    servers: str
    total: int = 0
    done: int = 0
    digest: JournalDigest = msgspec.field(default_factory=JournalDigest)
    consumers: list[StoredConsumer] = []
    files: int = 0
    kept: Path | None = None  # the place of the old file

    @property
    def place(self) -> str:
        """The place of this home, as the mark on the servers names it."""
        return describe_place(self.home.root)

    def count(self, done: int) -> None:
        self.done = done

    def list_facts(self) -> dict[str, object]:
        return {
            "journal": str(self.home.journal),
            "servers": self.servers,
            "records": self.digest.records,
            "sha256": self.digest.value,
            "consumers": len(self.consumers),
            "files": self.files,
            "owed": sum(len(one.owed) for one in self.consumers),
            "kept": str(self.kept) if self.kept else None,
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    to = "nats: to the servers in `engine`; sqlite: from them into the home"
    parser.add_argument("--to", choices=("nats", "sqlite"), required=True, help=to)
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(args: argparse.Namespace, home: Home) -> None:
    configuration = load_configuration(load_settings_schema(), home, get_process_environment())
    servers = find_servers(configuration)
    if servers is None:
        raise ConfigError(
            f"`engine` names no NATS servers: {home.config}\nset it, also where the journal comes from them: "
            "engine: nats://HOST:4222"
        )
    copy = JournalCopy(home, servers.url)
    take = take_to_servers if args.to == "nats" else take_to_file
    with reserve_home(home.lock, PATIENCE), show_progress("the journal", lambda: (copy.done, copy.total)):
        anyio.run(take, copy, servers, find_home(home, configuration))
    show_result(copy.list_facts(), describe(copy, args.to), as_json=args.json)


def describe(copy: JournalCopy, to: str) -> str:
    if not copy.digest.records:
        return f"nothing was taken along: {copy.servers if to == 'nats' else copy.home.journal} has the journal"
    records, consumers = format_count(copy.digest.records, "record"), format_count(len(copy.consumers), "consumer")
    counted = f"{records}, {consumers}, {format_count(copy.files, 'file')}, sha256 {copy.digest.value}"
    if to == "sqlite":
        left = "leave `engine` out of config.yaml, and start the gateway"
        return f"{copy.home.journal} is now what {copy.servers} held: {counted}; {left}"
    kept = f"; the file is {copy.kept}" if copy.kept else ""
    return f"{copy.servers} holds now what {copy.home.journal} was: {counted}{kept}"


async def take_to_servers(copy: JournalCopy, address: JournalServers, who: NodeHome) -> None:
    """Copy the journal to the servers. After an EngineError the file is unchanged."""
    path = copy.home.journal
    async with reserve_servers(address, who) as (engine, _):
        servers, mark = engine.get_journal(), parse_mark(await engine.read_mark())
        if mark is not None and mark not in (Mark(FILLING, copy.place), Mark(FILLED, copy.place)):
            raise EngineError(f"the journal at {copy.servers} is not for use: {mark.describe()}")
        if mark is None and not await servers.is_empty():
            if not path.exists():
                return
            what = f"the journal at {copy.servers} is not empty"
            raise EngineError(f"{what}: name another one behind the address, as nats://HOST:4222/NAME")
        if path.exists() or mark != Mark(FILLED, copy.place):
            check_file(path)
            await copy_to_servers(copy, servers)
            copy.files = await SharedFiles(engine.files, copy.home.files).put_all()
            await servers.set_mark(str(Mark(FILLED, copy.place)))
            copy.kept = set_aside(path, "migrated")
        await servers.set_mark("")


async def copy_to_servers(copy: JournalCopy, servers: "NatsJournal") -> None:
    file = await open_journal_file(copy.home.journal)
    copy.total = file.count()
    await servers.fill(file.read(), file.read_last_seq(), str(Mark(FILLING, copy.place)), copy.count)
    copy.consumers = file.read_consumers()
    for one in copy.consumers:
        await servers.add_consumer(one)
    copy.digest = await check_same(read_all(file.read()), servers.read())
    file.close()


async def take_to_file(copy: JournalCopy, address: JournalServers, who: NodeHome) -> None:
    """Copy the journal to the file. After an EngineError the servers' journal is unchanged."""
    path, moved = copy.home.journal, Mark(MOVED, copy.place)
    async with reserve_servers(address, who) as (engine, lease):
        servers, mark = engine.get_journal(), parse_mark(await engine.read_mark())
        if mark is not None and mark != moved:
            raise EngineError(f"the journal at {copy.servers} is not for use: {mark.describe()}")
        if path.exists():
            if mark == moved:
                return
            raise EngineError(
                f"{path} is there already: move it away, since the journal of the servers takes its place"
            )
        part = path.with_name(f"{path.name}.part")
        await copy_to_file(copy, engine, part)
        copy.files = await fetch_files(engine, copy.home)
        await servers.set_mark(str(moved))  # from here on no node starts
        if not lease.is_certain:  # a node may have started before
            await servers.set_mark("")
            raise EngineError("the migration stood still for too long, and gateways may have worked: run it again")
        remove_search_index(copy.home.search)
        part.rename(path)
        sync(path.parent)


async def copy_to_file(copy: JournalCopy, engine: "NatsEngine", part: Path) -> None:
    servers = engine.get_journal()
    copy.total = (await engine.health()).records
    await engine.take_back()
    with make_journal_file(part) as file:
        async for record in servers.read():
            file.add(record)
            copy.done += 1
        copy.consumers = await servers.read_consumers(await engine.consumers())
        file.add_consumers(copy.consumers)
        file.end(await servers.read_last_seq())
        copy.digest = await check_same(servers.read(), read_all(file.read()))


@asynccontextmanager
async def reserve_servers(address: JournalServers, who: NodeHome) -> "AsyncIterator[tuple[NatsEngine, JournalLease]]":
    """Open the servers' journal while no gateway uses it; raises EngineError if a gateway does."""
    async with (
        await open_servers(address, takes_marked=True) as engine,
        reserve_journal(engine, who, PATIENCE) as lease,
    ):
        yield engine, lease


def check_file(path: Path) -> None:
    """Raise EngineError if the file is missing or damaged."""
    if damaged := verify_journal(path).damaged:
        what = f"{path}: {damaged[0]} is not as it was written: the disk has changed it"
        raise EngineError(f"{what}; put a backup back with: hermes-gateway backup restore FILE")


async def read_all(records: Iterable[StoredRecord]) -> AsyncIterator[StoredRecord]:
    """Yield the records, with a pause after each 500, so that other tasks can renew the lease."""
    for number, record in enumerate(records):
        if number % 500 == 0:
            await anyio.lowlevel.checkpoint()
        yield record
