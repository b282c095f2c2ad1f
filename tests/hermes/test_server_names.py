"""Tools of servers whose names have an `_`: what guards, shell hooks, steps, transcripts and state.db call them."""

import json
import signal
import sqlite3
import sys
from collections.abc import Collection, Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.mcp.client import make_tool_name
from gateway.hermes.shim.tool_names import HERMES_TOOLS
from gateway.hooks.wires.oneshot_answer import CLAUDE_TOOLS
from gateway.testing import GatewayProcess
from gateway.worker.tool_names import TOOL_SERVERS, ToolNames
from tests.hermes.test_outbound import Receiver
from tests.hermes.test_plugins import last_result, wants

SERVER = Path(__file__).parent.parent / "agent" / "mcp" / "toolserver.py"
GUARD = """
import json, os, pathlib

def note(**said):
    with pathlib.Path(os.environ["HERMES_HOME"], "guard.jsonl").open("a") as notes:
        notes.write(json.dumps(said) + "\\n")

def guard(tool_name, **_):
    note(tool=tool_name)
    if tool_name in ("mcp__my_server__price", "mcp__late_one__price"):
        return {"action": "block", "message": "not by the plugin"}

def ask(conversation_history, **_):
    note(said=[one["name"] for one in conversation_history if one["role"] == "tool"])

def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
    ctx.register_hook("pre_llm_call", ask)
"""
STEPS = """
import os, pathlib

def handle(event_type, context):
    with pathlib.Path(os.environ["HERMES_HOME"], "steps").open("a") as notes:
        notes.write(" ".join(context["tool_names"]) + "\\n")
"""
SHELL = """#!/bin/sh
echo '{"decision": "block", "reason": "not by the script"}'
"""
CLAUDE = """#!/bin/sh
grep -q '"tool_name":"mcp__my_server__refuse"' || exit 0
echo "not by the program" >&2
exit 2
"""
TURNS = (
    wants("tea", "mcp_my_server_price", article="tea"),
    wants("where", "mcp_my_server_environment"),
    wants("no", "mcp_my_server_refuse"),
    wants("other", "mcp_my_price", article="tea"),
    wants("late", "mcp_late_one_price", article="tea"),
)


def tell(names: ToolNames, servers: Collection[str], tool: str) -> str:
    """Return the name of one of our tools with these servers configured."""
    context = copy_context()
    context.run(TOOL_SERVERS.set, lambda: servers)
    return context.run(names.describe_name, tool)


def resolve(names: ToolNames, servers: Collection[str], tool: str) -> str:
    context = copy_context()
    context.run(TOOL_SERVERS.set, lambda: servers)
    return context.run(names.resolve_call, tool, {})[0]


@pytest.mark.parametrize(
    ("servers", "ours", "theirs"),
    [
        (("my_server",), "mcp_my_server_push_it", "mcp__my_server__push_it"),
        (("a", "a_b"), "mcp_a_b_c", "mcp__a_b__c"),
        (("a_b", "a"), "mcp_a_x_c", "mcp__a__x_c"),
        (("a",), "mcp_a_b_c", "mcp__a__b_c"),
        (("a__b",), "mcp_a__b_c", "mcp__a__b__c"),
        ((), "mcp_git_push_it", "mcp__git__push_it"),
        (("my_server",), "mcp_my_server", "mcp__my__server"),
    ],
)
@pytest.mark.parametrize("names", [HERMES_TOOLS, CLAUDE_TOOLS], ids=["Hermes", "Claude Code"])
def test_the_servers_that_there_are_say_where_a_name_ends(
    names: ToolNames, servers: Collection[str], ours: str, theirs: str
) -> None:
    assert tell(names, servers, ours) == theirs
    assert resolve(names, servers, theirs) == ours


def test_a_hyphen_of_a_server_is_known_again() -> None:
    assert tell(HERMES_TOOLS, ["my-big_server"], "mcp_my-big_server_list") == "mcp__my_big_server__list"
    assert resolve(HERMES_TOOLS, ["my-big_server"], "mcp__my_big_server__list") == "mcp_my-big_server_list"
    assert tell(CLAUDE_TOOLS, ["my-big_server"], "mcp_my-big_server_list") == "mcp__my-big_server__list"


def test_what_marks_a_name_that_had_to_be_changed_is_not_told() -> None:
    ours = make_tool_name("git hub", "create_issue")
    assert ours.startswith("mcp_git_hub_create_issue_")
    assert tell(HERMES_TOOLS, ["git hub"], ours) == "mcp__git_hub__create_issue"


def settings(notes: Path, *names: str) -> str:
    server = {"command": sys.executable, "args": [str(SERVER), "stdio", str(notes)], "trust": "all"}
    return f"mcp_servers: {json.dumps(dict.fromkeys(names, server))}\nsessions: {{state_db: 'on'}}\n"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    receiver = Receiver(refused=0)
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture(scope="module")
def gateway(receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    place = tmp_path_factory.mktemp("h")
    with GatewayProcess(place / "home") as gateway:
        root = gateway.home.root
        gateway.script(*TURNS, settings=settings(place / "notes", "my", "my_server"))
        gateway.add_hook("steps", {"HOOK.yaml": "name: steps\nevents: [agent:step]\n", "handler.py": STEPS})
        manifest = "name: claude\nintercepts: [tool:before]\nprotocol: oneshot\ncommand: ./guard.sh\n"
        (gateway.add_hook("claude", {"HOOK.yaml": manifest, "guard.sh": CLAUDE}) / "guard.sh").chmod(0o755)
        plugin = root / "plugins" / "guard"
        plugin.mkdir(parents=True)
        (plugin / "plugin.yaml").write_text("name: guard\n")
        (plugin / "__init__.py").write_text(GUARD)
        script = root / "block.sh"
        script.write_text(SHELL)
        script.chmod(0o755)
        shell = {"command": str(script), "matcher": "mcp__my_server__(environment|grow)"}
        webhook = {"url": receiver.url, "events": ["post_tool_call"], "matcher": "mcp__my_server__.*"}
        told = {"plugins": {"enabled": ["guard"]}, "hooks": {"pre_tool_call": [shell], "outbound": [webhook]}}
        gateway.home.hermes_config.write_text(json.dumps(told))
        gateway.start()
        (name,) = [one["name"] for one in gateway.call("hooks.list")["hooks"] if one["name"].startswith("shell-")]
        assert gateway.cli("hooks", "trust", name).returncode == 0
        yield gateway


def noted(gateway: GatewayProcess, key: str) -> list[Any]:
    lines = (gateway.home.root / "guard.jsonl").read_text().splitlines()
    return [said[key] for line in lines if key in (said := json.loads(line))]


def steps(gateway: GatewayProcess) -> list[str]:
    path = gateway.home.root / "steps"
    return path.read_text().splitlines() if path.exists() else []


def kept(gateway: GatewayProcess) -> set[str]:
    """The names of tools in state.db."""
    with sqlite3.connect(f"file:{gateway.home.root / 'state.db'}?mode=ro", uri=True) as state:
        return {name for (name,) in state.execute("SELECT tool_name FROM messages WHERE tool_name IS NOT NULL")}


@pytest.mark.process
@pytest.mark.parametrize(
    ("text", "tool", "why"),
    [
        ("tea", "mcp__my_server__price", "not by the plugin"),
        ("where", "mcp__my_server__environment", "not by the script"),
        ("no", "mcp__my_server__refuse", "not by the program"),
        ("other", "mcp__my__price", ""),
    ],
)
def test_each_kind_of_guard_stops_the_tool_of_such_a_server(
    gateway: GatewayProcess, text: str, tool: str, why: str
) -> None:
    assert gateway.say(text, text)["reply"] == "grey"
    assert last_result(gateway, text) == (why or "tea: 5 francs")
    assert noted(gateway, "tool")[-1] == tool
    gateway.until(lambda: tool in steps(gateway))
    gateway.until(lambda: tool in kept(gateway))
    assert gateway.say(text, text)["status"] == "ok"
    assert noted(gateway, "said")[-1][:1] == [tool]


def name_tools(receiver: Receiver) -> set[str]:
    return {body["tool_name"] for body in receiver.bodies()}


@pytest.mark.process
def test_a_webhook_is_told_of_the_tools_of_such_a_server(gateway: GatewayProcess, receiver: Receiver) -> None:
    assert gateway.say("no", "webhook")["reply"] == "grey"
    gateway.until(lambda: "mcp__my_server__refuse" in name_tools(receiver))
    assert all(name.startswith("mcp__my_server__") for name in name_tools(receiver))


@pytest.mark.process
def test_a_server_that_is_added_while_it_runs_counts(gateway: GatewayProcess) -> None:
    written = gateway.home.config.read_text().partition("mcp_servers:")[0]
    gateway.configure(written + settings(gateway.home.root.parent / "notes", "my", "my_server", "late_one"))
    assert gateway.process
    gateway.process.send_signal(signal.SIGHUP)
    gateway.until(lambda: "the configuration was reloaded" in gateway.home.log.read_text())
    assert gateway.say("late", "late")["reply"] == "grey"
    assert last_result(gateway, "late") == "not by the plugin"
    assert noted(gateway, "tool")[-1] == "mcp__late_one__price"
