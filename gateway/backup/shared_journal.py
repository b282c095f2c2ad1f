"""The NATS servers that keep the journal in place of a file in the home, as the settings name them.

The code that reads and copies their journal is loaded on demand.
"""

from typing import TYPE_CHECKING, NamedTuple

from gateway.agent.libraries import load_library
from gateway.config.loading import Configuration

if TYPE_CHECKING:
    from gateway.cluster.journal_copy import SharedJournal

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


def load_shared_journal(servers: JournalServers) -> "SharedJournal":
    """Return what reads and copies the servers' journal, also while gateways work on it.

    Raises:
        ConfigError: the client of NATS is not installed.
    """
    load_library("nats")
    from gateway.cluster.journal_copy import SharedJournal  # noqa: PLC0415 - NATS is loaded only if it is used

    return SharedJournal(servers)
