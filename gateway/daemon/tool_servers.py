"""What is kept of the servers of tools: what they said of their tools, and which stood in the configuration early on.

Before it could be said how far a server is trusted, all its tools ran without a question. Servers of that time keep,
for owners and admins, the right to run what only reads; whatever is added later asks.
"""

import logging
from collections.abc import Collection, Iterable, Mapping

import msgspec

from gateway.agent.mcp.client import McpSpec
from gateway.agent.mcp.servers import McpServers
from gateway.agent.mcp.trust import ToolSnapshot
from gateway.engine.interface import Engine, NewRecord, append_in_parts
from gateway.errors import EngineError
from gateway.records import records, subjects

log = logging.getLogger(__name__)

KEPT_UNDER = "mcp"  # beside the values of hooks; no hook has such a name with a slash behind it
SERVERS_KEY = "servers"


class InheritedServers(msgspec.Struct, frozen=True):
    """The servers of the time before anybody could say how far they are trusted."""

    names: tuple[str, ...] = ()


class ToolServerJournal:
    """What the journal knows of the servers of tools."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.inherited: Collection[str] = ()

    async def load(self, configured: Collection[str], *, is_new: bool) -> None:
        """Find out which servers are of the early time: those of the first start, unless the home `is_new` itself."""
        kept = await self._read(KEPT_UNDER)
        if SERVERS_KEY in kept:
            self.inherited = msgspec.convert(kept[SERVERS_KEY], InheritedServers).names
            await self.keep_only(configured)
            return
        self.inherited = () if is_new else tuple(sorted(configured))
        await self._write(KEPT_UNDER, {SERVERS_KEY: InheritedServers(tuple(self.inherited))})

    async def keep_only(self, configured: Collection[str]) -> None:
        """A server that was taken out is a new one when it comes again."""
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
        pattern = subjects.hook_store_subject_of(where)
        return {kept.key: kept.value async for _, kept in records.read_all(self._engine, pattern, records.StoredValue)}

    async def _write(self, where: str, values: Mapping[str, object]) -> None:
        puts = [
            NewRecord(
                subjects.hook_store_subject_of(where, key),
                records.encode(records.StoredValue(hook=where, key=key, value=msgspec.to_builtins(value))),
            )
            for key, value in values.items()
        ]
        try:
            await append_in_parts(self._engine, puts)
        except EngineError as error:
            log.info("what is known of tool servers is found out again at the next start: %s", error)


def list_tool_notices(servers: McpServers) -> list[str]:
    """What whoever owns the gateway may want to know of its tools: how far they are trusted, and which changed."""
    changed = [
        f"the tool {tool} of {name} {how}; it asks until somebody lets it run"
        for name, server in servers.servers.items()
        for tool, how in server.changed.items()
    ]
    return [*describe_trust(servers.specs), *changed]


def report_trust(specs: Iterable[McpSpec]) -> None:
    """Say it once, at the start."""
    for line in describe_trust(specs):
        log.info("%s", line)


def describe_trust(specs: Iterable[McpSpec]) -> list[str]:
    """For whoever owns the gateway: of the early servers, what holds, and the lines for more and for less."""
    return [
        f"tools of {one.name} that only read run without a question for owners and admins, since it was configured "
        f"before one could say; for more: mcp_servers: {{{one.name}: {{trust: all}}}}, for less: trust: none"
        for one in specs
        if one.is_inherited and one.settings.trust is None
    ]
