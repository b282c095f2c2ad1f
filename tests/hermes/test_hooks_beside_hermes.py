"""The same hook folders in Hermes's own gateway and here: what their handlers see, call by call and key by key."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.conftest import FOLDERS, Seen
from tests.hermes.test_plugins_beside_hermes import environ_of, hermes, run

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(420), pytest.mark.thorough]

__all__ = ["hermes"]  # the fixture

SIDE = Path(__file__).with_name("hermes_gateway_side.py")
SAID = ("hello", "use a tool", "/title handled", "/title deny")
FIRST = [
    *("by-globals", "callable-object", "carries-over", "decides", "every-event", "facade", "forward-refs", "lasting"),
    *("re-exported", "session-vars", "step-counter"),
]
STRICT = ["schema-check", "typed-payload"]  # they compare keys: in Hermes, what another hook adds would be among them
# What is of this side alone.
OWN = frozenset({"platform", "platforms", "session_id", "session_key", "PLATFORM", "KEY", "ID", "MESSAGE_ID"})
SCRIPT = (
    {
        "user": "use a tool",
        "answers": [
            {
                "tool_calls": [
                    {"name": "shell", "args": {"command": "printf out"}},
                    {"name": "read_file", "args": {"path": "a.txt", "first_line": 1, "lines": 5}},
                ]
            },
            {"text": "y" * 1200},
        ],
    },
    {"user": "hello", "answers": [{"text": "y" * 1200}]},
)


class Side(NamedTuple):
    """The hooks' records, and the person's answers."""

    seen: dict[str, list[Any]]
    answers: list[str]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line[1] for line in self.seen["every-event"] if line[0] == name]


def furnish(home: Path, hooks: Sequence[str]) -> None:
    for name in hooks:
        shutil.copytree(FOLDERS / name, home / "hooks" / name)
    (home / "logs").mkdir()


def seen_in(home: Path) -> dict[str, list[Any]]:
    files = sorted((home / "seen").glob("*.jsonl"))
    return {path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in files}


def hear_theirs(hermes: Path, home: Path, hooks: Sequence[str]) -> Side:
    furnish(home, hooks)
    environ = environ_of(home, GATEWAY_ALLOW_ALL_USERS="1")
    done = run([str(hermes), str(SIDE), *SAID], env=environ, cwd=home)
    answers = [line.removeprefix("answers ") for line in done.stdout.splitlines() if line.startswith("answers ")]
    assert answers, done.stderr[-3000:]
    return Side(seen_in(home), json.loads(answers[0]))


def hear_ours(home: Path, hooks: Mapping[str, int]) -> Side:
    """`hooks`: how many lines each of them writes at least."""
    with GatewayProcess(home) as gateway:
        gateway.script(*SCRIPT, settings="tools: {shell: allow}\n")
        furnish(gateway.home.root, [*hooks])
        (gateway.home.root / "config.yaml").write_text("mine: {volume: 11}\n")
        gateway.start()
        answers = [gateway.say(text)["reply"] for text in SAID]
        seen = Seen(gateway)
        for hook, lines in hooks.items():
            seen.wait(hook, lines)
        gateway.until(lambda: "every-event" not in hooks or len(seen.events("agent:end")) == 2)
        gateway.stop()
        return Side(seen_in(gateway.home.root), answers)


@pytest.fixture(scope="module")
def theirs(hermes: Path, tmp_path_factory: pytest.TempPathFactory) -> Side:
    return hear_theirs(hermes, tmp_path_factory.mktemp("hermes"), FIRST)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Side:
    return hear_ours(tmp_path_factory.mktemp("h") / "home", dict.fromkeys(FIRST, 2))


@pytest.mark.parametrize("name", ["gateway:startup", "session:start", "agent:start", "agent:end", "command:title"])
def test_an_event_is_told_as_often_with_the_same_values_under_the_same_keys(
    theirs: Side, ours: Side, name: str
) -> None:
    assert len(ours.events(name)) == len(theirs.events(name)) > 0
    for our, their in zip(ours.events(name), theirs.events(name), strict=True):
        wanted = {key: value for key, value in their.items() if not key.startswith("_")}
        assert wanted.keys() == {key for key in our if not key.startswith("_")}
        assert {key: our[key] for key in wanted if key not in OWN} == {
            key: value for key, value in wanted.items() if key not in OWN
        }


def test_a_step_that_used_tools_has_the_same_keys(theirs: Side, ours: Side) -> None:
    (our,), (their,) = ([step for step in side.events("agent:step") if step["tools"]] for side in (ours, theirs))
    assert their.keys() == our.keys()
    assert their["tool_names"] == our["tool_names"]
    assert their["tools"][0].keys() == our["tools"][0].keys()
    assert isinstance(our["tools"][0]["arguments"], type(their["tools"][0]["arguments"]))


@pytest.mark.parametrize(
    "hook",
    [
        *("by-globals", "callable-object", "carries-over", "forward-refs", "lasting", "re-exported"),
        "step-counter",
    ],
)
def test_a_hook_is_called_in_the_same_way(theirs: Side, ours: Side, hook: str) -> None:
    assert ours.seen[hook] == theirs.seen[hook]


def test_who_compares_keys_finds_those_of_hermes_and_no_others(
    hermes: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    their = hear_theirs(hermes, tmp_path_factory.mktemp("hermes"), STRICT).seen
    our = hear_ours(tmp_path_factory.mktemp("h") / "home", {hook: len(lines) for hook, lines in their.items()}).seen
    assert our["schema-check"] == their["schema-check"]
    assert sorted(our["typed-payload"]) == sorted(their["typed-payload"])  # deciding about a command overtakes


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
