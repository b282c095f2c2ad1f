"""The trust in a server's tools: which run without a question, and if a tool is still the one that a person has seen.

A server itself describes its tools, and may change the description. The first description is stored (`ToolSnapshot`); a
tool that has changed since asks again, until a person approves it.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from gateway.config.settings import McpServerSettings
from gateway.messages.roles import is_admin

LONGEST_SHOWN = 300  # characters of a description in the message about its change


class ToolSnapshot(msgspec.Struct, frozen=True):
    """The server's description of a tool when it was last seen: a digest of all of it, and its first words."""

    digest: str
    description: str


NEVER_SEEN = ToolSnapshot("", "")


class SnapshotStore(Protocol):
    """The store of the servers' descriptions."""

    async def read(self, server: str) -> Mapping[str, ToolSnapshot]:
        """Return the descriptions by tool; empty for a server that was never up."""

    async def write(self, server: str, tools: Mapping[str, ToolSnapshot]) -> None:
        """Store these descriptions, beside the earlier ones."""


class ToolTrust(msgspec.Struct, frozen=True):
    """The tools of a server that run without a question.

    `is_inherited`: the server was configured before trust could be set; tools that only read still run without a
    question for owners and admins.
    """

    settings: McpServerSettings
    is_inherited: bool = False

    def is_allowed(self, tool: str, *, only_reads: bool) -> bool:
        """Return True if the configuration lets everybody run the tool."""
        return self.is_listed(tool) or (self.settings.trust == "read" and only_reads)

    def is_listed(self, tool: str) -> bool:
        """Return True if the configuration names the tool, or all tools: then its own description does not matter."""
        return self.settings.trust == "all" or tool in self.settings.allow

    def is_allowed_for(self, role: object, tool: str, *, only_reads: bool) -> bool:
        """Return True if the tool may run without a question for this role."""
        inherits = self.is_inherited and self.settings.trust is None and is_admin(role)
        return self.is_allowed(tool, only_reads=only_reads) or (inherits and only_reads)


def snapshot_of(found: Any) -> ToolSnapshot:
    """Return the server's present description of this tool."""
    said = [found.name, found.title, found.description, found.input_schema, found.annotations]
    written = msgspec.json.encode(said, enc_hook=lambda value: value.model_dump(mode="json"), order="deterministic")
    description = str(found.description or found.title or found.name)[:LONGEST_SHOWN]
    return ToolSnapshot(hashlib.sha256(written).hexdigest(), description)


def describe_change(before: ToolSnapshot | None, now: ToolSnapshot) -> str:
    """Describe a change of a tool for the gateway's owner."""
    if before is None:
        return f"is new, and says of itself: {now.description}"
    if before.description != now.description:
        return f"said of itself: {before.description}; and says now: {now.description}"
    return f"takes other arguments, or gives other hints, than before; it says of itself: {now.description}"
