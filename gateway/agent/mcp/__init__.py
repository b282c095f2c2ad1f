"""Tools of servers that speak MCP: programs that we start, and addresses."""

from gateway.agent.mcp.servers import McpServers
from gateway.agent.mcp.spec import McpSpec

__all__ = ["McpServers", "McpSpec"]
