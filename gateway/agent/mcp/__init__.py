"""Tools of servers that speak MCP: programs that we start, and addresses."""

from gateway.agent.mcp.client import McpSpec
from gateway.agent.mcp.servers import McpServers

__all__ = ["McpServers", "McpSpec"]
