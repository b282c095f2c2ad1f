"""The copy of a journal on NATS servers, made while a gateway works on it.

Records that are appended meanwhile are in it too: a record that they replace may have been removed before it was read.
A gateway that goes on with the copy delivers again what a consumer had in progress.
"""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio

from gateway.agent.libraries import load_library
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.engine.interface import Record
from gateway.engine.sqlite.backup import JournalContents, verify_journal
from gateway.engine.sqlite.whole_journal import make_journal_file
from gateway.errors import EngineError

if TYPE_CHECKING:
    from gateway.cluster.nats.engine import NatsEngine

MOST_TIMES = 100  # attempts to reach the end
USER, PASSWORD = "NATS_USER", "NATS_PASSWORD"


class JournalServers(NamedTuple):
    """The address of the servers, and the user for them."""

    url: str
    user: str = ""
    password: str = ""


def find_servers(configuration: Configuration) -> JournalServers | None:
    """Return the servers that keep the journal; None: it is in the home."""
    environ, settings = configuration.environ, configuration.settings
    if not settings.engine:
        return None
    return JournalServers(settings.engine, environ.get(USER, ""), environ.get(PASSWORD, ""))


async def open_servers(servers: JournalServers, *, takes_marked: bool = False) -> "NatsEngine":
    """Open the servers' journal, even while others use it; `takes_marked`: also during its migration.

    Raises:
        ConfigError: the client of NATS is not installed.
        EngineError: it cannot be opened.
    """
    load_library("nats")
    from gateway.cluster.nats.engine import open_nats  # noqa: PLC0415 - NATS is loaded only if it is used

    return await open_nats(servers.url, servers.user, servers.password, takes_marked=takes_marked)


def read_shared(servers: JournalServers, pattern: str, limit: int) -> list[Record]:
    """Read the records of matching subjects, up to a limit.

    Raises:
        ConfigError: the client of NATS is not installed.
        EngineError: the servers do not answer.
    """

    async def read() -> list[Record]:
        async with await open_servers(servers) as engine:
            return await engine.read(pattern, limit=limit)

    return anyio.run(read)


def fetch_shared_files(servers: JournalServers, home: Home) -> None:
    """Fetch all files of conversations from the servers, and those that agents wrote at any gateway, into the home.

    Raises:
        ConfigError: the client of NATS is not installed.
        EngineError: the servers do not answer, or the disk is full.
    """
    from gateway.cluster.folders import fetch_files  # noqa: PLC0415 - as above

    async def fetch() -> None:
        async with await open_servers(servers) as engine:
            await fetch_files(engine, home)

    anyio.run(fetch)


def create_shared_backup(servers: JournalServers, target: Path) -> JournalContents:
    """Copy the servers' journal to a file that a gateway can go on with; it is verified before it gets its name.

    Raises:
        ConfigError: the client of NATS is not installed.
        EngineError: the servers do not answer, the target exists already, or the disk is full.
    """
    if target.exists():
        raise EngineError(f"{target} exists already; name a file that does not")
    part = target.with_name(f"{target.name}.part")
    try:
        anyio.run(_copy, servers, part)
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
