"""A guard for each tool, written for Hermes, in Hermes itself and here: its calls, and its denials."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.hermes.shim.tool_names import HERMES_TOOLS, OUR_TOOLS_ALONE
from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import PLUGINS
from tests.hermes.test_plugins_beside_hermes import SIDE, environ_of, hermes, run

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(420), pytest.mark.thorough]

__all__ = ["hermes"]  # the fixture

# A call of each tool: by its name here, and as Hermes's model makes it.
CALLS: Sequence[tuple[str, dict[str, Any], str, dict[str, Any]]] = (
    ("shell", {"command": "rm -rf /"}, "terminal", {"command": "rm -rf /"}),
    (
        "read_file",
        {"path": "a.txt", "first_line": 3, "lines": 4},
        "read_file",
        {"path": "a.txt", "offset": 3, "limit": 4},
    ),
    ("write_file", {"path": "a.txt", "content": "x"}, "write_file", {"path": "a.txt", "content": "x"}),
    (
        "edit_file",
        {"path": "a.txt", "old": "x", "new": "y", "every": True},
        "patch",
        {"mode": "replace", "path": "a.txt", "old_string": "x", "new_string": "y", "replace_all": True},
    ),
    ("list_files", {"path": "."}, "search_files", {"pattern": "*", "target": "files", "path": "."}),
    ("web_fetch", {"url": "http://127.0.0.1:9/"}, "web_extract", {"urls": ["http://127.0.0.1:9/"]}),
    ("web_search", {"query": "tea", "limit": 3}, "web_search", {"query": "tea", "limit": 3}),
    ("remember", {"text": "x"}, "memory", {"action": "add", "target": "memory", "content": "x"}),
    ("load_skill", {"skill": "tea"}, "skill_view", {"name": "tea"}),
    ("delegate", {"agent": "helper", "task": "look"}, "delegate_task", {"goal": "look"}),
    ("schedule", {"text": "tea", "when": "20m"}, "cronjob", {"action": "create", "prompt": "tea", "schedule": "20m"}),
    ("scheduled", {}, "cronjob", {"action": "list"}),
    ("unschedule", {"reminder": "7"}, "cronjob", {"action": "remove", "job_id": "7"}),
    ("unschedule", {"reminder": "8", "action": "pause"}, "cronjob", {"action": "pause", "job_id": "8"}),
    ("send_message", {"text": "x", "to": "home"}, "send_message", {"action": "send", "message": "x", "target": "home"}),
)
NOT_OFFERED = {"send_message"}  # 0.19 has this tool, and gives it to no model
# Else Hermes's model has no cronjob and no web, and its callbacks see no transcript of so many tools.
ENVIRON = {"HERMES_GATEWAY_SESSION": "1", "TAVILY_API_KEY": "none", "HERMES_PLUGIN_PAYLOAD_MAX_CHARS": "1000000"}

Ledger = list[list[Any]]


def furnish(home: Path) -> None:
    (home / "plugins").mkdir(parents=True, exist_ok=True)
    shutil.copytree(PLUGINS / "tool-ledger", home / "plugins" / "tool-ledger")
    (home / "config.yaml").write_text("plugins: {enabled: [tool-ledger]}\n")


def ledger_in(home: Path) -> Ledger:
    return [json.loads(line) for line in (home / "seen-ledger.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def theirs(hermes: Path, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    home = tmp_path_factory.mktemp("hermes")
    furnish(home)
    calls = [[theirs, args] for _, _, theirs, args in CALLS if theirs not in NOT_OFFERED]
    environ = environ_of(home, **ENVIRON)
    done = run([str(hermes), str(SIDE), json.dumps(calls)], env=environ, cwd=home)
    assert done.stdout.endswith("grey\n"), done.stderr[-2000:]
    return ledger_in(home)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        furnish(gateway.home.root)
        calls = [{"name": ours, "args": args} for ours, args, _, _ in CALLS]
        answers = [{"tool_calls": calls}, {"text": "grey"}]
        gateway.script({"user": "all", "answers": answers}, settings="tools: {search: {provider: hook}}\n")
        gateway.start()
        gateway.until(lambda: gateway.call("hooks.info", {"name": "tool-ledger"})["state"] == "loaded")
        assert gateway.say("all")["reply"] == "grey"
        gateway.until(lambda: [line[0] for line in ledger_in(gateway.home.root)].count("after") == len(CALLS))
        gateway.until(lambda: "transcript" in [line[0] for line in ledger_in(gateway.home.root)])
        gateway.stop()
        return ledger_in(gateway.home.root)


def asked(ledger: Ledger) -> list[tuple[str, Mapping[str, Any]]]:
    found = [(name, args) for _, name, args in (line for line in ledger if line[0] == "asked")]
    return sorted(found, key=json.dumps)


def after(ledger: Ledger) -> list[list[Any]]:
    """Return the end of each call, as observers receive it: name, status and result."""
    found = [[name, status, result] for _, name, _, status, result in (line for line in ledger if line[0] == "after")]
    return sorted(found, key=json.dumps)


def test_each_guard_is_asked_about_its_tool_with_the_arguments_that_it_knows(theirs: Ledger, ours: Ledger) -> None:
    both = [one for one in asked(ours) if one[0] not in NOT_OFFERED]
    assert both == asked(theirs)
    assert {name for name, _ in asked(ours)} == {name for _, _, name, _ in CALLS}


def test_what_it_stops_is_stopped_with_the_same_words(theirs: Ledger, ours: Ledger) -> None:
    assert [one for one in after(ours) if one[0] not in NOT_OFFERED] == after(theirs)
    assert {status for _, status, _ in after(ours)} == {"blocked"}


def test_the_transcript_has_hermess_names_too(theirs: Ledger, ours: Ledger) -> None:
    (their,), (our,) = ([names for kind, names, *_ in side if kind == "transcript"] for side in (theirs, ours))
    assert [name for name in our if name not in NOT_OFFERED] == their


def test_the_table_has_a_guard_for_every_tool_in_it() -> None:
    assert {row.ours for row in HERMES_TOOLS.rows} - {"send_file"} == {ours for ours, _, _, _ in CALLS}
    assert not OUR_TOOLS_ALONE.keys() & {row.ours for row in HERMES_TOOLS.rows}


def test_a_tool_of_a_server_is_named_as_hermes_names_it() -> None:
    assert HERMES_TOOLS.describe_call("mcp_brave-search_web_search", {"q": 1}) == (
        "mcp__brave_search__web_search",
        {"q": 1},
    )
    assert HERMES_TOOLS.resolve_call("mcp__git__push_it", {}) == ("mcp_git_push_it", {})
    assert HERMES_TOOLS.resolve_call("todo", {"todos": []}) == ("todo", {"todos": []})


@pytest.mark.parametrize(("ours", "args", "theirs", "their_args"), CALLS, ids=[call[0] for call in CALLS])
def test_a_call_is_the_same_in_both_directions(
    ours: str, args: dict[str, Any], theirs: str, their_args: dict[str, Any]
) -> None:
    told = HERMES_TOOLS.describe_call(ours, args)
    assert told == (theirs, {**their_args, **({"agent": "helper"} if ours == "delegate" else {})})
    assert HERMES_TOOLS.resolve_call(*told) == (ours, args)
    assert HERMES_TOOLS.resolve_args(ours, told[1]) == args
