"""The same hook folders in Hermes's own gateway and here: what their handlers see, call by call and key by key."""

import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.conftest import FOLDERS, Seen
from tests.hermes.test_plugins_beside_hermes import hermes, run

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(420)]

__all__ = ["hermes"]  # the fixture

SIDE = Path(__file__).with_name("hermes_gateway_side.py")
SAID = ("hello", "use a tool", "/title handled", "/title deny")
FIRST = [
    *("by-globals", "callable-object", "carries-over", "decides", "every-event", "facade", "forward-refs", "lasting"),
    *("re-exported", "session-vars"),
]
# What is of this side alone.
OWN = frozenset({"platform", "platforms", "session_id", "session_key", "PLATFORM", "KEY", "ID", "MESSAGE_ID"})
SCRIPT = (
    {
        "user": "use a tool",
        "answers": [{"tool_calls": [{"name": "remember", "args": {"text": "x"}}]}, {"text": "y" * 1200}],
    },
    {"user": "hello", "answers": [{"text": "y" * 1200}]},
)


class Side(NamedTuple):
    """What the hooks wrote down, and what the person was answered."""

    seen: dict[str, list[Any]]
    answers: list[str]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line[1] for line in self.seen["every-event"] if line[0] == name]


def furnish(home: Path) -> None:
    for name in FIRST:
        shutil.copytree(FOLDERS / name, home / "hooks" / name)
    (home / "logs").mkdir()


def seen_in(home: Path) -> dict[str, list[Any]]:
    files = sorted((home / "seen").glob("*.jsonl"))
    return {path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in files}


@pytest.fixture(scope="module")
def theirs(hermes: Path, tmp_path_factory: pytest.TempPathFactory) -> Side:
    home = tmp_path_factory.mktemp("hermes")
    furnish(home)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "HERMES_HOME": str(home), "GATEWAY_ALLOW_ALL_USERS": "1"}
    done = run([str(hermes), str(SIDE), *SAID], env=environ, cwd=home)
    answers = [line.removeprefix("answers ") for line in done.stdout.splitlines() if line.startswith("answers ")]
    assert answers, done.stderr[-3000:]
    return Side(seen_in(home), json.loads(answers[0]))


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Side:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        gateway.script(*SCRIPT)
        furnish(gateway.home.root)
        (gateway.home.root / "config.yaml").write_text("mine: {volume: 11}\n")
        gateway.start()
        answers = [gateway.say(text)["reply"] for text in SAID]
        seen = Seen(gateway)
        for hook in set(FIRST) - {"every-event"}:
            seen.wait(hook, 2)
        gateway.until(lambda: len(seen.events("agent:end")) == 2)
        gateway.stop()
        return Side(seen_in(gateway.home.root), answers)


@pytest.mark.parametrize("name", ["gateway:startup", "session:start", "agent:start", "agent:end", "command:title"])
def test_an_event_is_told_as_often_with_the_same_values_under_the_same_keys(
    theirs: Side, ours: Side, name: str
) -> None:
    assert len(ours.events(name)) == len(theirs.events(name)) > 0
    for our, their in zip(ours.events(name), theirs.events(name), strict=True):
        wanted = {key: value for key, value in their.items() if not key.startswith("_")}
        assert wanted.keys() <= our.keys()
        assert {key: our[key] for key in wanted if key not in OWN} == {
            key: value for key, value in wanted.items() if key not in OWN
        }


def test_a_step_that_used_tools_has_the_same_keys(theirs: Side, ours: Side) -> None:
    (our,), (their,) = ([step for step in side.events("agent:step") if step["tools"]] for side in (ours, theirs))
    assert their.keys() <= our.keys()
    assert their["tools"][0].keys() == our["tools"][0].keys()
    assert isinstance(our["tools"][0]["arguments"], type(their["tools"][0]["arguments"]))


@pytest.mark.parametrize("hook", ["by-globals", "carries-over", "forward-refs", "lasting", "re-exported"])
def test_a_hook_is_called_in_the_same_way(theirs: Side, ours: Side, hook: str) -> None:
    assert ours.seen[hook] == theirs.seen[hook]


def test_a_module_has_the_same_name_and_place(theirs: Side, ours: Side) -> None:
    their, our = theirs.seen["every-event"][0], ours.seen["every-event"][0]
    assert (our[1], Path(our[2]).parts[-3:], our[3]) == (their[1], Path(their[2]).parts[-3:], their[3])


def test_decisions_about_commands_end_the_same(theirs: Side, ours: Side) -> None:
    assert ours.seen["decides"] == theirs.seen["decides"]
    assert ours.answers[2:] == theirs.answers[2:] == ["done already", "not today"]


def test_the_conversations_variables_hold_the_same(theirs: Side, ours: Side) -> None:
    for our, their in zip(ours.seen["session-vars"], theirs.seen["session-vars"], strict=True):
        assert our[0].keys() == their[0].keys()
        different = {key for key in their[0] if our[0][key] != their[0][key]}
        assert different - {"USER_NAME"} <= OWN


def test_hermess_modules_answer_the_same(theirs: Side, ours: Side) -> None:
    (their,), (our,) = theirs.seen["facade"][0], ours.seen["facade"][0]
    for name in their:
        assert our[name] == their[name], name
