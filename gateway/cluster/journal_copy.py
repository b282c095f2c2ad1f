"""The journal on NATS servers, read and copied while gateways work on it.

The copy also has records that are appended during the copying: they may replace records that were removed before the
copy reached them. A gateway that goes on with the copy delivers all records again that a consumer had in progress.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec

from gateway.agent.libraries import load_library
from gateway.backup.shared_journal import JournalServers
from gateway.cluster.folders import fetch_files
from gateway.cluster.sqlite_journal import make_journal_file
from gateway.config.home import Home
from gateway.engine.interface import Record
from gateway.engine.sqlite.backup import JournalContents, verify_journal
from gateway.errors import EngineError

if TYPE_CHECKING:
    from gateway.cluster.nats.engine import NatsEngine

MOST_TIMES = 100  # attempts to reach the end of the journal


async def open_servers(servers: JournalServers, *, takes_marked: bool = False) -> "NatsEngine":
    """Open the servers' journal, even while other gateways use it, and with `takes_marked` even during a migration.

    Raises:
        ConfigError: the client of NATS is not installed.
        EngineError: the journal cannot be opened.
    """
    load_library("nats")
    from gateway.cluster.nats.engine import open_nats  # noqa: PLC0415 - its client is an extra

    return await open_nats(servers.url, servers.user, servers.password, takes_marked=takes_marked)


class SharedJournal(msgspec.Struct, frozen=True):
    """The journal of these servers. All methods raise EngineError if the servers do not answer."""

    servers: JournalServers

    def read(self, pattern: str, limit: int) -> list[Record]:
        """Read the records of matching subjects, up to a limit."""

        async def read() -> list[Record]:
            async with await open_servers(self.servers) as engine:
                return await engine.read(pattern, limit=limit)

        return anyio.run(read)

    def fetch_files(self, home: Home) -> None:
        """Fetch all files of conversations, and all files of shared folders, into the home."""

        async def fetch() -> None:
            async with await open_servers(self.servers) as engine:
                await fetch_files(engine, home)

        anyio.run(fetch)

    def create_backup(self, target: Path) -> JournalContents:
        """Copy the journal to a file that a gateway can go on with, and verify the copy before it gets its name.

        Raises:
            EngineError: the target exists already, or the disk is full.
        """
        if target.exists():
            raise EngineError(f"{target} exists already; name a file that does not")
        part = target.with_name(f"{target.name}.part")
        try:
            anyio.run(_copy, self.servers, part)
            contents = verify_journal(part)
            part.rename(target)
        except OSError as error:
            raise EngineError(f"{target} cannot be written: {error.strerror}") from error
        finally:
            part.unlink(missing_ok=True)
        return contents


async def _copy(servers: JournalServers, part: Path) -> None:
    async with await open_servers(servers) as engine:
        journal, reached = engine.get_journal(), 0
        with make_journal_file(part) as file:
            for _ in range(MOST_TIMES):
                end = await journal.read_last_seq()
                async for record in journal.read(reached):
                    file.add(record)
                    reached = record.seq
                if await journal.read_last_seq() == end:
                    break
            file.add_consumers(await journal.read_floors(await engine.consumers()))
            file.end(await journal.read_last_seq())
