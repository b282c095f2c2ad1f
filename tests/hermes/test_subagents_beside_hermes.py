"""A guard's view of a sub-agent's actions, in Hermes itself and here: its session is one of its own."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import lines
from tests.hermes.test_plugins_beside_hermes import SIDE, environ_of, hermes, run
from tests.hermes.test_silent_failures import STRANGERS

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(420), pytest.mark.thorough]

__all__ = ["hermes"]  # the fixture

WRITE = {"path": "child.txt", "content": "x"}
TASK = f"CALLS {json.dumps([['write_file', WRITE]])}"
HELPER = "agents: {main: {agents: [helper]}, helper: {description: helps}}\n"


def furnish(home: Path) -> None:
    shutil.copytree(STRANGERS / "plugins" / "supervisor", home / "plugins" / "supervisor")
    (home / "config.yaml").write_text("plugins: {enabled: [supervisor]}\n")


def seen_in(home: Path) -> set[tuple[Any, ...]]:
    """There a sub-agent works beside the conversation, here it is waited for: the order says nothing."""
    return set(map(tuple, lines(home / "seen-supervisor.jsonl")))


def test_a_sub_agent_is_known_by_its_session(hermes: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "hermes"
    furnish(theirs)
    calls = json.dumps([["delegate_task", {"goal": TASK}]])
    done = run([str(hermes), str(SIDE), calls, "4"], env=environ_of(theirs), cwd=theirs)
    assert done.stdout.endswith("grey\n"), done.stderr[-2000:]
    assert not (theirs / "child.txt").exists()
    with GatewayProcess(tmp_path / "home") as gateway:
        delegated = {"name": "delegate", "args": {"agent": "helper", "task": TASK}}
        gateway.script(
            {"user": "moon", "answers": [{"tool_calls": [delegated]}, {"text": "grey"}]},
            {"user": TASK, "answers": [{"tool_calls": [{"name": "write_file", "args": WRITE}]}, {"text": "grey"}]},
            settings=HELPER,
        )
        furnish(gateway.home.root)
        gateway.start()
        gateway.until(lambda: gateway.call("hooks.info", {"name": "supervisor"})["state"] == "loaded")
        assert gateway.say("moon")["reply"] == "grey"
        gateway.stop()
        assert list(gateway.home.own_folder.rglob("child.txt")) == []
        assert seen_in(gateway.home.root) == seen_in(theirs)
        assert ("tool", "write_file", True, True) in seen_in(theirs)
