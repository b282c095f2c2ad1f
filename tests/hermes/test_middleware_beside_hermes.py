"""Middleware around tools, in Hermes itself and here: it changes arguments, answers for a tool, looks at results."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import lines
from tests.hermes.test_plugins_beside_hermes import SIDE, environ_of, hermes, run

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(420), pytest.mark.thorough]

__all__ = ["hermes"]  # the fixture

CALLS: list[list[Any]] = [
    ["write_file", {"path": "kept.txt", "content": "x"}],
    ["write_file", {"path": "closed.txt", "content": "x"}],
    ["write_file", {"path": "twice.txt", "content": "x"}],
]
CONFIG = {"plugins": {"enabled": ["porter", "clerk"]}}
PORTER = """
import json, os
from pathlib import Path

SEEN = Path(os.environ["HERMES_HOME"]) / "seen-porter.jsonl"
IDS = ("task_id", "session_id", "turn_id", "api_request_id", "tool_call_id")

def note(*what):
    with SEEN.open("a") as file:
        file.write(json.dumps(what) + "\\n")

def request(tool_name, args, original_args, **more):
    note("request", tool_name, args, original_args, sorted(more))
    if args["path"] == "kept.txt":
        return {"args": {**args, "content": "changed"}, "source": "porter"}
    args["content"] = "changed in its place"

def outer(tool_name, args, next_call, **more):
    note("outer", tool_name, args, sorted(more))
    if args["path"] == "closed.txt":
        return json.dumps({"error": "the porter keeps it closed"})
    given = next_call(args)
    note("given", type(given).__name__, "error" in json.loads(given))
    if args["path"] == "twice.txt":
        next_call(args)
    return json.dumps({"porter": "has seen it"})

def inner(tool_name, args, next_call, **_):
    note("inner", args)
    return next_call({**args, "content": args["content"] + " by the inner one"})

def after(tool_name, args, result, **_):
    note("after", tool_name, args["path"], args["path"] == "twice.txt" or result)

def register(ctx):
    ctx.register_middleware("tool_request", request)
    ctx.register_middleware("tool_execution", outer)
    ctx.register_middleware("tool_execution", inner)
    ctx.register_hook("post_tool_call", after)
"""


def furnish(home: Path) -> None:
    (home / "plugins" / "porter").mkdir(parents=True)
    (home / "plugins" / "porter" / "plugin.yaml").write_text("name: porter\n")
    (home / "plugins" / "porter" / "__init__.py").write_text(PORTER)
    (home / "config.yaml").write_text(json.dumps(CONFIG))


@pytest.fixture(scope="module")
def theirs(hermes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("hermes")
    furnish(home)
    for call in CALLS:  # of several together 0.19 asks around each twice
        done = run([str(hermes), str(SIDE), json.dumps([call])], env=environ_of(home), cwd=home)
        assert done.stdout.startswith("grey\n"), done.stderr[-2000:]
    return home


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        calls = [{"name": name, "args": args} for name, args in CALLS]
        gateway.script(
            {"user": "moon", "answers": [{"tool_calls": calls}, {"text": "grey"}]},
            {"user": "fail", "answers": [{"tool_calls": calls[:1]}, {"text": "red"}]},
        )
        furnish(gateway.home.root)
        gateway.start()
        gateway.until(lambda: gateway.call("hooks.info", {"name": "porter"})["state"] == "loaded")
        assert gateway.say("moon")["reply"] == "grey"
        yield gateway


def files_in(folder: Path) -> dict[str, str]:
    names = {"kept.txt", "closed.txt", "twice.txt"}
    return {path.name: path.read_text() for path in folder.rglob("*.txt") if path.name in names}


def test_it_is_told_and_answers_as_there(theirs: Path, ours: GatewayProcess) -> None:
    told = [sorted(map(json.dumps, lines(home / "seen-porter.jsonl"))) for home in (theirs, ours.home.root)]
    assert told[0] == told[1] != []


def test_what_it_changes_and_stops_is_changed_and_stopped(theirs: Path, ours: GatewayProcess) -> None:
    found = files_in(ours.home.own_folder)
    assert found == files_in(theirs)
    assert found["kept.txt"] == "changed by the inner one"
    assert "closed.txt" not in found


def test_nothing_is_said_to_be_in_vain(ours: GatewayProcess) -> None:
    info: dict[str, Any] = ours.call("hooks.info", {"name": "porter"})
    assert "middleware" not in json.dumps(info["findings"])
    assert "register_middleware" not in ours.cli("doctor", "--hermes").stdout


def test_one_that_is_broken_lets_nothing_through(ours: GatewayProcess) -> None:
    clerk = ours.home.plugins / "clerk"
    clerk.mkdir()
    (clerk / "plugin.yaml").write_text("name: clerk\n")
    (clerk / "__init__.py").write_text(
        "import no_such_package\n\ndef register(ctx):\n"
        "    ctx.register_middleware('tool_execution', lambda **_: 'never')\n"
    )
    ours.call("hooks.reload")
    ours.until(lambda: ours.call("hooks.info", {"name": "clerk"})["state"] == "broken")
    assert ours.say("fail", "broken")["reply"] == "red"
    shown = json.loads(ours.cli("sessions", "show", "agent:main:terminal:dm:broken", "--json").stdout)
    (result,) = [one["content"] for one in shown["entries"] if one["role"] == "tool"]
    assert "clerk" in result
    assert "no_such_package" in result
