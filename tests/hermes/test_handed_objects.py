"""Objects of Hermes's insides that callbacks receive answer here, and the additions of newer Hermes exist."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, wants
from tests.hermes.test_silent_failures import STRANGERS, list_hooks

pytestmark = pytest.mark.process

PLUGINS = ("front-desk", "bus-driver", "passenger", "usher")
SCRIPT = (
    {"user": "hello", "answers": [{"text": "hello yourself"}]},
    wants("write", "write_file", path="wanted.txt", content="much"),
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        gateway.script(*SCRIPT)
        for name in PLUGINS:
            shutil.copytree(STRANGERS / "plugins" / name, gateway.home.plugins / name)
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": list(PLUGINS)}}))
        gateway.start()
        gateway.until(lambda: not [one for one in list_hooks(gateway).values() if one["state"] == "starting"])
        yield gateway


def seen(gateway: GatewayProcess, name: str) -> list[list[Any]]:
    path = gateway.home.root / "seen" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_what_dispatch_hands_over_answers(gateway: GatewayProcess) -> None:
    gateway.say("hello", "desk")
    gateway.until(lambda: any(line[0] == "sent" for line in seen(gateway, "front-desk")))
    lines = seen(gateway, "front-desk")
    said = {line[0]: line[1:] for line in lines}
    assert ["shape", "hello", "text", "terminal", "desk", "dm"] in lines
    assert ["env", "desk", "owner"] in lines
    assert said["adapters"] == [["terminal"], True, 1]
    assert said["sent"] == [True, True]
    assert said["missing"] == [False, "none"]
    sessions = [line for line in lines if line[0] == "session" and line[2] == "agent:main:terminal:dm:desk"]
    assert sessions
    assert sessions[0][1]
    log = (gateway.home.hook_logs / "plugin:front-desk.log").read_text()
    assert log.count("gateway has no _running_agents here") == 1


def test_a_message_that_dispatch_skips_is_not_answered(gateway: GatewayProcess) -> None:
    assert gateway.say("look away", "desk2")["reply"] in ("", "Welcome at the front desk")


def test_the_commands_are_a_table_to_read(gateway: GatewayProcess) -> None:
    assert gateway.say("/table")["reply"] == "title True True True"


def test_plugins_tell_each_other_of_events(gateway: GatewayProcess) -> None:
    assert gateway.say("/drive 1")["reply"] == "told 1, and only by its own name"
    gateway.until(lambda: bool(seen(gateway, "passenger")))
    assert seen(gateway, "passenger") == [["market", {"name": "bus", "passengers": [1, 2]}]]


def test_a_plugin_takes_a_message_after_admission(gateway: GatewayProcess) -> None:
    assert gateway.say("usher, where is my seat", "hall")["reply"] == "hall: this way"
    assert gateway.say("hello", "hall")["reply"] == "hello yourself"


def test_modified_arguments_are_merged(gateway: GatewayProcess) -> None:
    gateway.say("write", "merge")
    (written,) = gateway.home.own_folder.rglob("allowed.txt")
    assert written.read_text() == "much and more"
    assert "allowed.txt" in last_result(gateway, "merge")
