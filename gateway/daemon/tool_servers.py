"""The facts that the journal keeps about tool servers: their descriptions of tools, and the names of early servers.

Early versions had no setting of trust, and all tools ran without a question. Servers of that time may still run
read-only tools without a question, for owners and admins; servers that you add later ask.
"""

import logging
from collections.abc import Collection, Iterable, Mapping

import msgspec

from gateway.agent.mcp.client import McpSpec
from gateway.agent.mcp.servers import McpServers
from gateway.agent.mcp.trust import ToolSnapshot
from gateway.engine.interface import Engine, append_in_parts
from gateway.errors import EngineError
from gateway.records.stores import make_value_put, read_store

log = logging.getLogger(__name__)

KEPT_UNDER = "mcp"  # beside the values of hooks, whose names have no slash
SERVERS_KEY = "servers"


class InheritedServers(msgspec.Struct, frozen=True):
    """The tool servers from the time before the setting of trust."""

    names: tuple[str, ...] = ()


class ToolServerJournal(msgspec.Struct, eq=False):
    """The facts about tool servers in the journal."""

    _engine: Engine
    inherited: Collection[str] = ()

    async def load(self, configured: Collection[str], *, is_new: bool) -> None:
        """Load the names of the early servers: the servers at the first start, unless the home `is_new`."""
        kept = await self._read(KEPT_UNDER)
        if SERVERS_KEY in kept:
            self.inherited = msgspec.convert(kept[SERVERS_KEY], InheritedServers).names
            await self.keep_only(configured)
            return
        self.inherited = () if is_new else tuple(sorted(configured))
        await self._write(KEPT_UNDER, {SERVERS_KEY: InheritedServers(tuple(self.inherited))})

    async def keep_only(self, configured: Collection[str]) -> None:
        """Keep only the configured early servers; a server that you remove and add again counts as new."""
        left = tuple(name for name in self.inherited if name in configured)
        if left != tuple(self.inherited):
            self.inherited = left
            await self._write(KEPT_UNDER, {SERVERS_KEY: InheritedServers(left)})

    async def read(self, server: str) -> Mapping[str, ToolSnapshot]:
        kept = await self._read(f"{KEPT_UNDER}/{server}")
        return {tool: msgspec.convert(value, ToolSnapshot) for tool, value in kept.items()}

    async def write(self, server: str, tools: Mapping[str, ToolSnapshot]) -> None:
        await self._write(f"{KEPT_UNDER}/{server}", tools)

    async def _read(self, where: str) -> dict[str, object]:
        return {kept.key: kept.value async for _, kept in read_store(self._engine, where)}

    async def _write(self, where: str, values: Mapping[str, object]) -> None:
        puts = [make_value_put(where, key, msgspec.to_builtins(value)) for key, value in values.items()]
        try:
            await append_in_parts(self._engine, puts)
        except EngineError as error:
            log.info("what is known of tool servers is found out again at the next start: %s", error)


def list_tool_notices(servers: McpServers) -> list[str]:
    """List notices about tools for the owner: how far the gateway trusts them, and which tools changed."""
    changed = [
        f"the tool {tool} of {name} {how}; it asks until an approver lets it run"
        for name, server in servers.servers.items()
        for tool, how in server.changed.items()
    ]
    return [*describe_trust(servers.specs), *changed]


def report_trust(specs: Iterable[McpSpec]) -> None:
    """Log once, at the start, how far the tools are trusted."""
    for line in describe_trust(specs):
        log.info("%s", line)


def describe_trust(specs: Iterable[McpSpec]) -> list[str]:
    """Describe the trust in each early server for the owner, with the settings for more and for less trust."""
    return [
        f"tools of {one.name} that only read run without a question for owners and admins, since it was configured "
        f"before one could say; for more: mcp_servers: {{{one.name}: {{trust: all}}}}, for less: trust: none"
        for one in specs
        if one.is_inherited and one.settings.trust is None
    ]
