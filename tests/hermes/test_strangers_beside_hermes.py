"""Strangers' deciders and plugins in Hermes's own gateway and here: the same decisions, objects of the same shape."""

import json
import shutil
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_hooks_beside_hermes import SIDE, Side, seen_in
from tests.hermes.test_plugins_beside_hermes import environ_of, hermes, run
from tests.hermes.test_silent_failures import STRANGERS

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(420), pytest.mark.thorough]

__all__ = ["hermes"]  # the fixture

HOOKS = ("night-watch", "shouts", "counts-commands", "_shared", "lends", "patient", "swaps", "first", "tidies")
PLUGINS = ("front-desk", "usher")
SAID = ("hello", "/title night", "/title LOUD", "look away", "/title day", "/undo", "/retry", "/help", "/sessions")


def furnish(home: Path) -> None:
    for kind, names in (("hooks", HOOKS), ("plugins", PLUGINS)):
        for name in names:
            shutil.copytree(STRANGERS / kind / name, home / kind / name)


@pytest.fixture(scope="module")
def theirs(hermes: Path, tmp_path_factory: pytest.TempPathFactory) -> Side:
    home = tmp_path_factory.mktemp("hermes")
    furnish(home)
    environ = environ_of(home, GATEWAY_ALLOW_ALL_USERS="1")
    done = run([str(hermes), str(SIDE), *SAID], env=environ, cwd=home)
    answers = [line.removeprefix("answers ") for line in done.stdout.splitlines() if line.startswith("answers ")]
    assert answers, done.stderr[-3000:]
    return Side(seen_in(home), json.loads(answers[0]))


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Side:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        gateway.script({"user": "hello", "answers": [{"text": "y" * 1200}]})
        furnish(gateway.home.root)
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": list(PLUGINS)}}))
        gateway.start()
        answers = [gateway.say(text)["reply"] for text in SAID]
        gateway.stop()
        return Side(seen_in(gateway.home.root), answers)


def test_the_same_commands_are_refused_with_the_same_words(theirs: Side, ours: Side) -> None:
    assert ours.answers[1:3] == theirs.answers[1:3] == ["not at night", "no shouting (True)"]
    assert "day" in ours.answers[4]
    assert "day" in theirs.answers[4]


def test_a_decider_decides_wherever_its_code_comes_from_and_whatever_its_keys(theirs: Side, ours: Side) -> None:
    assert ours.answers[5:8] == theirs.answers[5:8] == ["lends says no", "patient says no", "swaps says no"]


def test_of_several_decisions_the_first_counts(theirs: Side, ours: Side) -> None:
    assert ours.answers[8] == theirs.answers[8] == "first says so"


def test_an_observer_sees_the_same_commands(theirs: Side, ours: Side) -> None:
    assert ours.seen["counts-commands"] == theirs.seen["counts-commands"]


def test_what_dispatch_hands_over_has_the_same_shape(theirs: Side, ours: Side) -> None:
    our, their = ([line for line in side.seen["front-desk"] if line[0] == "fields"] for side in (ours, theirs))
    assert our == their != []


def test_the_same_messages_are_told(theirs: Side, ours: Side) -> None:
    shapes = [[line[1] for line in side.seen["front-desk"] if line[0] == "shape"] for side in (ours, theirs)]
    assert shapes[0] == shapes[1]


def test_what_is_sent_by_an_adapter_succeeds(theirs: Side, ours: Side) -> None:
    for side in (ours, theirs):
        assert ["sent", True, True] in side.seen["front-desk"]


def test_a_message_that_is_skipped_is_answered_by_nobody(theirs: Side, ours: Side) -> None:
    assert theirs.answers[3] == "None"
    assert ours.answers[3] in ("", "Welcome at the front desk")
