"""From the settings to the servers of further tools."""

from collections.abc import Iterator

from gateway.agent.mcp import McpServers, McpSpec
from gateway.config.home import Home
from gateway.config.settings import Settings


def mcp_specs_from(settings: Settings, home: Home) -> Iterator[McpSpec]:
    """Those that are switched on."""
    for name, server in settings.mcp_servers.items():
        if server.enabled:
            yield McpSpec(
                name,
                command=server.command,
                args=server.args,
                env={key: secret.reveal() for key, secret in server.env.items()},
                folder=home.root,
                url=server.url,
                headers={key: secret.reveal() for key, secret in server.headers.items()},
                tools=server.tools,
                timeout=server.timeout,
                output_limit=settings.tools.output_limit,
            )


def list_server_problems(servers: McpServers) -> list[str]:
    """Which of them somebody should look at."""
    return [f"tool server {one.spec.name}: {one.reason}" for one in servers.servers.values() if one.state == "down"]
