"""What servers said of their tools, kept in memory."""

from collections.abc import Mapping

from gateway.agent.mcp.trust import ToolSnapshot


class MemorySnapshots:
    def __init__(self) -> None:
        self.snapshots: dict[str, dict[str, ToolSnapshot]] = {}

    async def read(self, server: str) -> Mapping[str, ToolSnapshot]:
        return self.snapshots.get(server, {})

    async def write(self, server: str, tools: Mapping[str, ToolSnapshot]) -> None:
        self.snapshots.setdefault(server, {}).update(tools)
