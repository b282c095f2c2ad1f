"""An agent's tools for each person: by name, by glob, all, or those that need no approval."""

from dataclasses import replace
from typing import Any, cast

import pytest

from gateway.access.rules import AccessRules
from gateway.agent import Tool, tool
from gateway.agent.toolbox.chat import make_chat_tools
from gateway.agent.toolbox.files import make_send_file
from gateway.agent.toolbox.workspace import Workspace
from gateway.config.fields import Secret
from gateway.config.search_settings import SearchSettings
from gateway.config.settings import Settings, ToolSettings
from gateway.daemon.part_settings import tools_by_role_from
from gateway.messages.roles import ROLES, Role


@tool()
async def shell(command: str) -> str:
    """Run it."""
    return command


def named(name: str, **more: Any) -> Tool:
    return replace(shell, name=name, **more)


def rules(**tools: tuple[str, ...]) -> AccessRules:
    return AccessRules("ignore", 30, tools=cast("dict[Role, tuple[str, ...]]", tools))


DEFAULTS = rules(**tools_by_role_from(Settings()))


@pytest.mark.parametrize(
    ("given", "highest"),
    [
        (named("shell"), ["owner", "admin"]),
        (named("a_plugin_s"), ["owner", "admin"]),
        (named("mcp_wiki_delete"), ["owner", "admin"]),
        (named("mcp_wiki_search", is_trusted=True), ["owner", "admin", "operator", "user"]),
        (named("write_file"), ["owner", "admin", "operator", "user"]),
        (named("send_message"), ["owner", "admin", "operator", "user"]),
        (make_send_file(lambda _facts: Workspace(())), ["owner", "admin", "operator", "user"]),
        (next(one for one in make_chat_tools() if one.name == "send_poll"), ["owner", "admin", "operator", "user"]),
        (named("schedule"), ["owner", "admin", "operator", "user"]),
        (named("recall"), ["owner", "admin", "operator", "user"]),
        (named("web_fetch"), [*ROLES]),
        (named("web_search"), ["owner", "admin", "operator", "user"]),
        (named("load_skill"), [*ROLES]),
    ],
)
def test_what_is_given_to_whom_by_default(given: Tool, highest: list[Role]) -> None:
    assert [role for role in ROLES if DEFAULTS.fit_tool(given, role)] == highest


@pytest.mark.parametrize(("provider", "searches"), [("searxng", True), ("brave", False), ("hook", False)])
def test_guests_search_where_it_costs_nothing(provider: Any, searches: bool) -> None:
    search = SearchSettings(provider=provider, url="http://x", key=Secret("k"))
    grants = rules(**tools_by_role_from(Settings(tools=ToolSettings(search=search))))
    assert bool(grants.fit_tool(named("web_search"), "guest")) is searches


@pytest.mark.parametrize(
    ("names", "given"),
    [
        (("all",), ["shell", "mcp_wiki_search", "mcp_mail_send"]),
        (("*",), ["shell", "mcp_wiki_search", "mcp_mail_send"]),
        (("mcp_wiki_*",), ["mcp_wiki_search"]),
        (("trusted", "shell"), ["shell", "mcp_wiki_search"]),
        (("Shell", "mcp"), []),
        ((), []),
    ],
)
def test_names_globs_all_and_what_is_trusted(names: tuple[str, ...], given: list[str]) -> None:
    grants = rules(user=names)
    tools = (named("shell"), named("mcp_wiki_search", is_trusted=True), named("mcp_mail_send"))
    assert [one.name for one in tools if grants.fit_tool(one, "user")] == given
    assert all(grants.fit_tool(one, "owner") is one for one in tools)


def test_who_has_not_every_tool_writes_into_their_own_chat_alone() -> None:
    send = next(one for one in make_chat_tools() if one.name == "send_message")
    for role in ROLES:
        fitted = rules(user=("send_message",), guest=("all",)).fit_tool(send, role)
        assert fitted
        assert ("to" in fitted.schema["properties"]) is (role != "user")
        assert fitted.name == "send_message"
