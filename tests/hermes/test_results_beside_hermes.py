"""Results of tools, in Hermes itself and here: the same tools, passed to the same plugin, which removes keys."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.hermes.shim.tool_results import TOOL_RESULTS
from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import PLUGINS
from tests.hermes.test_plugins_beside_hermes import SIDE, environ_of, hermes, run

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(420), pytest.mark.thorough]

__all__ = ["hermes"]  # the fixture

KEY = "sk-abc123def"
# Calls that end well and calls that fail: by our names, and as Hermes's model makes them.
CALLS: Sequence[tuple[str, dict[str, Any], str, dict[str, Any]]] = (
    ("shell", {"command": f"printf {KEY}"}, "terminal", {"command": f"printf {KEY}"}),
    ("shell", {"command": f"echo {KEY}; exit 3"}, "terminal", {"command": f"echo {KEY}; exit 3"}),
    ("shell", {"command": "true"}, "terminal", {"command": "true"}),
    ("read_file", {"path": "a.txt"}, "read_file", {"path": "a.txt"}),
    (
        "read_file",
        {"path": "b.txt", "first_line": 2, "lines": 2},
        "read_file",
        {"path": "b.txt", "offset": 2, "limit": 2},
    ),
    ("read_file", {"path": "nope.ini"}, "read_file", {"path": "nope.ini"}),  # no file of that batch is like it
    ("write_file", {"path": "new.txt", "content": "grün\n"}, "write_file", {"path": "new.txt", "content": "grün\n"}),
    (
        "edit_file",
        {"path": "c.txt", "old": "two", "new": "zwei"},
        "patch",
        {"mode": "replace", "path": "c.txt", "old_string": "two", "new_string": "zwei"},
    ),
    (
        "edit_file",
        {"path": "d.txt", "old": "nowhere", "new": "x"},
        "patch",
        {"mode": "replace", "path": "d.txt", "old_string": "nowhere", "new_string": "x"},
    ),
    ("list_files", {"path": "folder"}, "search_files", {"pattern": "*", "target": "files", "path": "folder"}),
    ("list_files", {"path": "no-folder"}, "search_files", {"pattern": "*", "target": "files", "path": "no-folder"}),
    ("web_fetch", {"url": "http://127.0.0.1:9/"}, "web_extract", {"urls": ["http://127.0.0.1:9/"]}),
    ("remember", {"text": KEY}, "memory", {"action": "add", "target": "memory", "content": KEY}),
    ("load_skill", {"skill": "brewing"}, "skill_view", {"name": "brewing"}),
    ("load_skill", {"skill": "coffee"}, "skill_view", {"name": "coffee"}),
    ("schedule", {"text": "tea", "when": "20m"}, "cronjob", {"action": "create", "prompt": "tea", "schedule": "20m"}),
    ("schedule", {"text": "tea", "when": "soon"}, "cronjob", {"action": "create", "prompt": "tea", "schedule": "soon"}),
    ("unschedule", {"reminder": "777"}, "cronjob", {"action": "remove", "job_id": "777"}),
)
# What each of the two has words, numbers and places of its own for.
OWN = frozenset(
    {
        *(
            "error",
            "hint",
            "lint",
            "diff",
            "resolved_path",
            "files_modified",
            "message",
            "note",
            "usage",
            "entry_count",
        ),
        *("job_id", "job", "schedule", "next_run_at", "deliver", "description", "path", "skill_dir"),
        *("content", "results", "file_size"),  # looked at below
    }
)
# Code that reckons with these finds what it can reckon with.
SAME_TYPE = frozenset({"usage", "entry_count", "file_size", "message", "note", "content", "diff", "results", "job"})
# What Hermes says besides where it fails: it looks for what was meant.
MORE = frozenset({"available_skills", "hint"})
FILES = {"a.txt": f"one\n{KEY}\n", "b.txt": "one\ntwo\nthree\nfour\n", "c.txt": "one\ntwo\n", "d.txt": "one\n"}
SKILL = f"---\nname: brewing\ndescription: how to make tea\n---\n# Tea\n\nBoil water with {KEY}.\n"
ENVIRON = {"HERMES_GATEWAY_SESSION": "1", "TAVILY_API_KEY": "none", "WITH_MEMORY": "1"}

Told = list[Any]  # tool, args, result, status, error_type, error_message


def furnish(home: Path, workspace: Path) -> None:
    shutil.copytree(PLUGINS / "redactor", home / "plugins" / "redactor")
    (home / "config.yaml").write_text("plugins: {enabled: [redactor]}\n")
    (home / "skills" / "brewing").mkdir(parents=True)
    (home / "skills" / "brewing" / "SKILL.md").write_text(SKILL)
    (workspace / "folder").mkdir(parents=True)
    (workspace / "folder" / "x.txt").write_text("x")
    for name, text in FILES.items():
        (workspace / name).write_text(text)


class Side:
    """The plugin's calls in one of the two, and the result that it left for the model."""

    def __init__(self, home: Path) -> None:
        self.told: list[Told] = [json.loads(line) for line in (home / "seen-results.jsonl").read_text().splitlines()]
        self.shown: str = (home / "seen-transcript.json").read_text()

    def of(self, tool: str, args: Mapping[str, Any]) -> Told:
        """By the call: both run some of them side by side."""
        (found,) = [one for one in self.told if one[0] == tool and args.items() <= one[1].items()]
        return found


def run_hermes(python: Path, home: Path) -> Side:
    """One turn in Hermes with all calls."""
    furnish(home, home)
    calls = [[tool, args] for _, _, tool, args in CALLS]
    environ = environ_of(home, **ENVIRON)
    done = run([str(python), str(SIDE), json.dumps(calls)], env=environ, cwd=home)
    assert done.stdout.startswith("grey\n"), done.stderr[-2000:]
    return Side(home)


@pytest.fixture(scope="module")
def theirs(hermes: Path, tmp_path_factory: pytest.TempPathFactory) -> Side:
    return run_hermes(hermes, tmp_path_factory.mktemp("hermes"))


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Side:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        furnish(gateway.home.root, gateway.home.own_folder / "workspace")
        calls = [{"name": tool, "args": args} for tool, args, _, _ in CALLS]
        answers = [{"tool_calls": calls}, {"text": "grey"}]
        gateway.script({"user": "all", "answers": answers}, settings="tools: {shell: allow}\n")
        gateway.start()
        gateway.until(lambda: gateway.call("hooks.info", {"name": "redactor"})["state"] == "loaded")
        assert gateway.say("all")["reply"] == "grey"
        gateway.until((gateway.home.root / "seen-transcript.json").exists)
        gateway.stop()
        return Side(gateway.home.root)


@pytest.mark.parametrize(
    ("_tool", "_args", "name", "args"), CALLS, ids=[f"{n}-{one[0]}" for n, one in enumerate(CALLS)]
)
def test_each_result_has_hermess_keys_and_says_the_same(
    theirs: Side, ours: Side, _tool: str, _args: Mapping[str, Any], name: str, args: Mapping[str, Any]
) -> None:
    their, our = theirs.of(name, args), ours.of(name, args)
    assert our[2].keys() == (their[2].keys() - MORE if their[2].get("error") else their[2].keys())
    assert our[3:5] == their[3:5]  # status and kind of error
    assert {key: type(our[2][key]) for key in our[2].keys() & SAME_TYPE} == {
        key: type(value) for key, value in their[2].items() if key in SAME_TYPE
    }
    known = {key: value for key, value in their[2].items() if key in our[2] and key not in OWN}
    assert {key: our[2][key] for key in known} == known


def test_a_file_has_the_same_numbered_lines(theirs: Side, ours: Side) -> None:
    for args in ({"path": "a.txt"}, {"path": "b.txt", "offset": 2}):
        assert ours.of("read_file", args)[2]["content"] == theirs.of("read_file", args)[2]["content"]
    whole = {"path": "a.txt"}  # of a part it is not known here how large the whole is
    assert ours.of("read_file", whole)[2]["file_size"] == theirs.of("read_file", whole)[2]["file_size"]


def test_a_page_and_a_skill_say_the_same_inside(theirs: Side, ours: Side) -> None:
    page = {"urls": ["http://127.0.0.1:9/"]}
    (their,), (our,) = (side.of("web_extract", page)[2]["results"] for side in (theirs, ours))
    assert our.keys() == their.keys()
    assert all([our["error"], their["error"]])
    assert {**our, "error": ""} == {**their, "error": ""}
    for side in (theirs, ours):
        assert "Boil water" in side.of("skill_view", {"name": "brewing"})[2]["content"]


def test_what_it_takes_out_reaches_the_model_on_neither_side(theirs: Side, ours: Side) -> None:
    for side in (theirs, ours):
        assert any(KEY in json.dumps(one[2]) for one in side.told)
        assert KEY not in side.shown
        assert side.shown.count("[a key]") >= 4


def test_the_transcript_has_the_results_as_hermes_has_them(theirs: Side, ours: Side) -> None:
    """What a tool gave is one object there too. Around a page Hermes puts words for its model, so that is left out."""
    their, our = ([text for _, text in json.loads(side.shown)] for side in (theirs, ours))
    for (_, _, name, _), told, said in zip(CALLS, their, our, strict=True):
        if name != "web_extract":
            keys = json.loads(told).keys()
            assert json.loads(said).keys() in (keys, keys - MORE), name


def test_every_shape_is_compared(theirs: Side) -> None:
    compared = {tool for tool, _, _, _ in CALLS}
    # `send_message` and `send_file` are given to no model there, `delegate` answers later there, `web_search` needs a
    # service there, and `scheduled` is in the table's test.
    assert TOOL_RESULTS.keys() - compared == {"send_message", "send_file", "delegate", "web_search", "scheduled"}
    assert len(theirs.told) == len(CALLS)
