"""The same plugin folder in Hermes itself and here: what its callbacks see, call by call and key by key."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.hermes.modules import HERMES_OWN_MODULES
from gateway.testing import GatewayProcess
from tests.environments import install
from tests.hermes.test_plugins import PLUGINS, wants

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(600), pytest.mark.thorough]

LOCKS = Path(__file__).parent
SIDE = Path(__file__).with_name("hermes_side.py")
SEEN = "seen-plugin.jsonl"
# What is not a matter of the conversation: ids, times, sizes, and how each side reaches its model.
OWN = frozenset(
    {
        *("session_id", "task_id", "turn_id", "api_request_id", "tool_call_id"),
        *("started_at", "ended_at", "api_duration", "duration_ms"),
        *("base_url", "provider", "api_mode", "model", "response_model", "sender_id", "usage"),
        *("message_count", "tool_count", "approx_input_tokens", "request_char_count", "max_tokens"),
        *("request", "request_messages", "response", "assistant_message", "conversation_history"),
    }
)

Seen = list[tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def hermes() -> Path:
    """An interpreter that has hermes-agent: HERMES_PYTHON, or one in an environment that is made once and kept."""
    named = os.environ.get("HERMES_PYTHON")
    return Path(named) if named else install("hermes-agent", LOCKS)


def environ_of(home: Path, **more: str) -> dict[str, str]:
    """What Hermes finds around it. It asks each Python of its PATH who it is, and shims in it answer after a second."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "HERMES_HOME": str(home), **more}


def run(command: Sequence[str], **more: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def furnish(home: Path) -> None:
    (home / "plugins").mkdir(parents=True)
    shutil.copytree(PLUGINS / "every-hook", home / "plugins" / "every-hook")
    (home / "config.yaml").write_text("plugins: {enabled: [every-hook]}\n")


def seen_in(home: Path) -> Seen:
    lines = (home / SEEN).read_text().splitlines()
    return [(name, kwargs) for name, kwargs in map(json.loads, lines)]


@pytest.fixture(scope="module")
def theirs(hermes: Path, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    home = tmp_path_factory.mktemp("hermes")
    furnish(home)
    done = run([str(hermes), str(SIDE)], env=environ_of(home), cwd=home)
    assert done.stdout.endswith("grey\n"), done.stderr[-2000:]
    return seen_in(home)


@pytest.fixture(scope="module")
def ours(theirs: Seen, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What was told here, of the names that Hermes told of too: it has no stream that hooks see, for instance."""
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        furnish(gateway.home.root)
        gateway.script(wants("moon", "moon"))
        gateway.start()
        gateway.until(lambda: gateway.call("hooks.info", {"name": "every-hook"})["state"] == "loaded")
        assert gateway.say("moon")["reply"] == "grey"
        names = {name for name, _ in theirs}
        gateway.until(lambda: [name for name, _ in seen_in(gateway.home.root)].count("post_api_request") == 2)
        gateway.stop()
        return [(name, kwargs) for name, kwargs in seen_in(gateway.home.root) if name in names]


def in_order(seen: Seen) -> list[str]:
    """What is told while the turn waits: observers of the model's answers hear of them in their own time."""
    return [name for name, _ in seen if name != "post_api_request"]


def test_the_callbacks_are_called_in_the_same_order_and_as_often(theirs: Seen, ours: Seen) -> None:
    assert in_order(ours) == in_order(theirs)
    assert sorted(name for name, _ in ours) == sorted(name for name, _ in theirs)


def test_each_call_has_the_same_keys(theirs: Seen, ours: Seen) -> None:
    for name in dict(theirs):
        for their, our in zip(calls_of(theirs, name), calls_of(ours, name), strict=True):
            assert their.keys() - our.keys() == set(), name
            assert our.keys() - their.keys() == set(), name


def test_each_call_has_the_same_values_where_they_are_of_the_conversation(theirs: Seen, ours: Seen) -> None:
    for name in dict(theirs):
        for their, our in zip(calls_of(theirs, name), calls_of(ours, name), strict=True):
            assert {key: our[key] for key in their if key not in OWN} == {
                key: value for key, value in their.items() if key not in OWN
            }, name


def test_the_history_is_the_same_conversation(theirs: Seen, ours: Seen) -> None:
    for name in ("pre_llm_call", "post_llm_call"):
        their, our = calls_of(theirs, name)[0], calls_of(ours, name)[0]
        assert spoken(our["conversation_history"]) == spoken(their["conversation_history"]), name


def test_what_is_hermess_own_is_all_that_it_installs(hermes: Path) -> None:
    reads = "import importlib.metadata as m; print(m.distribution('hermes-agent').read_text('top_level.txt'))"
    assert set(run([str(hermes), "-c", reads]).stdout.split()) == HERMES_OWN_MODULES


def calls_of(seen: Seen, name: str) -> list[dict[str, Any]]:
    return [kwargs for called, kwargs in seen if called == name]


def spoken(history: Sequence[dict[str, Any]]) -> list[tuple[str, str, list[str]]]:
    return [
        (one["role"], one.get("content") or "", [call["function"]["name"] for call in one.get("tool_calls") or ()])
        for one in history
    ]
