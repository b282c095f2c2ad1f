"""The journal of a gateway: a file in its home, or a journal on NATS servers that several gateways share."""

import json
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

from gateway.agent.libraries import describe_install, is_installed
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.engine.interface import Engine
from gateway.engine.sqlite.engine import open_sqlite
from gateway.engine.sqlite.journal_end import write_missing_end
from gateway.files.folders import read_plain_file
from gateway.hooks.places.switches import write_atomically
from gateway.sessions.search_index import read_index_end
from gateway.yaml_source.tree import Finding, SourceLocation

CLIENT = "nats"
LETTERS = "abcdefghijklmnopqrstuvwxyz"

ReportWaiting: TypeAlias = Callable[[str], None]


@asynccontextmanager
async def open_home_journal(home: Home, configuration: Configuration) -> AsyncIterator[Engine]:
    """Open the journal in the home. Raises EngineError if the journal cannot be opened."""
    write_missing_end(home.journal, partial(read_index_end, home.search))
    async with await open_sqlite(home.journal, max_bytes=configuration.settings.journal.max_size or None) as engine:
        yield engine


def find_missing_client(configuration: Configuration) -> Iterator[Finding]:
    """Yield a finding if the journal is on NATS servers and the client library of NATS is not installed."""
    if configuration.settings.engine and not is_installed(CLIENT):
        place = configuration.origins.get("engine") or SourceLocation("engine")
        yield Finding(place, "engine: NATS servers are to keep the journal", describe_install(CLIENT))


def find_node(home: Home, configuration: Configuration) -> str:
    """Return the name of this gateway: the name in the settings, or else a name that belongs to the home.

    One process serves a home. After a crash the next process has the same name, so it continues the turns at once.
    """
    return configuration.settings.node.name or find_node_name(home.node_name, home.root)


def find_node_name(path: Path, home: Path) -> str:
    """Return the name of the host and four letters, which the home makes once and keeps in `path`.

    A copy of a home is another home, with letters of its own.
    """
    kept = read_kept_name(path, home)
    if not kept:
        kept = make_kept_name(home)
        with suppress(OSError):  # a full disk: the next start makes another name
            write_atomically(path, json.dumps(kept).encode())
    return f"{socket.gethostname()}-{kept['letters']}"


def read_kept_name(path: Path, home: Path) -> dict[str, str]:
    """Read the kept name; return an empty dict if it is missing, or belongs to another home."""
    try:
        kept = dict(json.loads(read_plain_file(path)))
    except (OSError, ValueError, TypeError):
        return {}
    return kept if kept.get("home") == str(home.resolve()) else {}


def make_kept_name(home: Path) -> dict[str, str]:
    return {"home": str(home.resolve()), "letters": "".join(secrets.choice(LETTERS) for _ in range(4))}
