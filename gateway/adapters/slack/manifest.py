"""The manifest of the app for Slack: its rights, its events and its commands, made from one table.

Slack reserves some command names, and an app may have fifty; ours get a prefix if they would collide. A person who
types `!name` in a message needs no entry at all.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gateway.dispatcher.commands import Command, CommandTable

SCOPES: Final = (
    *("app_mentions:read", "channels:history", "channels:read", "chat:write", "commands", "files:read"),
    *("files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write"),
    *("mpim:history", "mpim:read", "reactions:read", "reactions:write", "users:read"),
)
VIEW_SCOPES: Final = ("assistant:write",)  # for Slack's view of agents alone: an app without it lacks nothing else
EVENTS: Final = (
    *("app_home_opened", "app_mention", "message.channels", "message.groups"),
    *("message.im", "message.mpim", "reaction_added", "reaction_removed"),
)
RESERVED: Final = frozenset({"status", "search", "remind", "topic", "help", "who", "leave", "invite", "rename", "open"})
PREFIX: Final = "gateway-"
MOST: Final = 50


NAME: Final = "Hermes Gateway"
ABOUT: Final = "An agent in your workspace"


def build_manifest(table: "CommandTable", url: str = "") -> dict[str, Any]:
    """Build the manifest for https://api.slack.com/apps, Create New App, From a manifest.

    `url`: where Slack calls us.
    """
    called = {"request_url": url} if url else {}
    return {
        "display_information": {"name": NAME, "description": ABOUT},
        "features": {
            "agent_view": {"agent_description": ABOUT},
            "app_home": {"messages_tab_enabled": True, "messages_tab_read_only_enabled": False},
            "bot_user": {"display_name": NAME, "always_online": True},
            "slash_commands": [build_command(one, url) for one in table.values() if not one.hidden][:MOST],
        },
        "oauth_config": {"scopes": {"bot": sorted((*SCOPES, *VIEW_SCOPES))}},
        "settings": {
            "event_subscriptions": {**called, "bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True, **called},
            "org_deploy_enabled": False,
            "socket_mode_enabled": not url,
            "token_rotation_enabled": False,
        },
    }


def build_command(command: "Command", url: str = "") -> dict[str, Any]:
    about: dict[str, Any] = {
        "command": f"/{PREFIX if command.name in RESERVED else ''}{command.name}",
        "description": command.summary[:200] or command.name,
    }
    if command.usage:
        about["usage_hint"] = command.usage[:1000]
    return about | {"should_escape": False} | ({"url": url} if url else {})


def command_name_of(name: str) -> str:
    """Return our own name of a command at Slack."""
    return name.removeprefix(PREFIX)
