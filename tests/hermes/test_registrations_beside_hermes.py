"""Registrations of plugins in their authors' habits, in Hermes itself and here; those without effect are reported."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, lines, wants
from tests.hermes.test_plugins_beside_hermes import SIDE, environ_of, hermes, run
from tests.hermes.test_silent_failures import STRANGERS

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(420), pytest.mark.thorough]

__all__ = ["hermes"]  # the fixture

FOLDERS = ("hermes-plugin-warden", "toolmaker", "borrower")
CALLS = [
    ["read_file", {"path": "closed.txt"}],
    ["make_snapshot", {}],
    ["write_file", {"path": "b.txt", "content": "x"}],
]
CONFIG = {"plugins": {"enabled": ["warden", "toolmaker", "borrower"]}, "mine": {"volume": 11}}
KEY = {"BORROWER_KEY": "sesame"}
SCRIBE = """
import os, time
from pathlib import Path

def register(ctx):
    Path(__file__).with_name("made.py").write_text(f"AT = {time.time()!r}")
    with open(os.path.join(os.environ["HERMES_HOME"], "loads"), "a") as file:
        file.write("x")
    ctx.register_command("scribe", lambda raw_args: "written")
"""


def furnish(home: Path) -> None:
    for name in FOLDERS:
        shutil.copytree(STRANGERS / "plugins" / name, home / "plugins" / name)
    (home / "config.yaml").write_text(json.dumps(CONFIG))


@pytest.fixture(scope="module")
def theirs(hermes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("hermes")
    furnish(home)
    done = run([str(hermes), str(SIDE), json.dumps(CALLS)], env=environ_of(home, **KEY), cwd=home)
    assert done.stdout.endswith("grey\n"), done.stderr[-2000:]
    return home


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        calls = [{"name": name, "args": args} for name, args in CALLS]
        turn = {"user": "moon", "answers": [{"tool_calls": calls}, {"text": "grey"}]}
        gateway.script(turn, wants("view", "make_snapshot"), wants("knot", "load_skill", skill="warden:knots"))
        furnish(gateway.home.root)
        gateway.start(environ=KEY)
        gateway.until(lambda: all(info(gateway, name)["state"] == "loaded" for name in FOLDERS))
        assert gateway.say("moon")["reply"] == "grey"
        yield gateway


def info(gateway: GatewayProcess, name: str) -> dict[str, Any]:
    return dict(gateway.call("hooks.info", {"name": name}))


def test_a_plugin_whose_folder_is_called_otherwise_finds_itself(theirs: Path, ours: GatewayProcess) -> None:
    told = [lines(home / "seen-warden.jsonl") for home in (theirs, ours.home.root)]
    assert told[0] == told[1] != []


def test_its_guard_stops_what_it_stops_there(theirs: Path, ours: GatewayProcess) -> None:
    shown = json.loads(ours.cli("sessions", "show", "agent:main:terminal:dm:main", "--json").stdout)
    results = [one["content"] for one in shown["entries"] if one["role"] == "tool"]
    assert results[:2] == ["the warden keeps closed.txt", "a view"]


def test_its_skill_has_its_own_name(ours: GatewayProcess) -> None:
    ours.say("knot", "knot")
    assert "Tie it twice." in last_result(ours, "knot")
    assert "skill warden:knots" in info(ours, "hermes-plugin-warden")["offers"]


def test_the_model_is_offered_the_same_tools(theirs: Path, ours: GatewayProcess) -> None:
    told = [lines(home / "seen-toolmaker.jsonl")[0] for home in (theirs, ours.home.root)]
    assert told[0] == told[1] == ["make_snapshot"]


def test_what_it_takes_from_hermess_modules_is_the_same(theirs: Path, ours: GatewayProcess) -> None:
    told = [lines(home / "seen-borrower.jsonl") for home in (theirs, ours.home.root)]
    assert told[0] == told[1] != []


def test_a_middleware_that_is_asked_there_and_not_here_is_a_matter_for_its_owner(ours: GatewayProcess) -> None:
    said = "the middleware llm_execution is never asked here: what it stops or changes under Hermes goes through"
    assert said in info(ours, "toolmaker")["reason"]
    assert [one for one in ours.call("status")["attention"] if said in one]


def test_a_tool_without_leave_takes_the_place_of_none(theirs: Path, ours: GatewayProcess) -> None:
    assert (theirs / "b.txt").read_text() == "x"
    assert [path.read_text() for path in ours.home.own_folder.rglob("b.txt")] == ["x"]


def test_what_is_in_vain_is_said(ours: GatewayProcess) -> None:
    ours.say("/late", "late")
    said = "\n".join(info(ours, "toolmaker")["findings"])
    for what in (
        "the tool make_nothing is not offered to the model: its own check says that it cannot work",
        "the tool make_trouble is not offered to the model: its own check fails: RuntimeError: no such device",
        "the tool write_file is not offered: the gateway has one that does the same",
        "the tool terminal is not offered: the gateway has one that does the same",
        "the tool recall gives way to the gateway's own of that name",
        "plugins.entries.toolmaker.allow_tool_override: true",
        "the command /help is not this plugin's",
    ):
        assert what in said
    ours.until(lambda: "the command /later is registered too late" in info(ours, "toolmaker")["reason"])
    assert "the tool make_late is registered too late" in info(ours, "toolmaker")["reason"]


def test_of_two_that_bring_one_tool_the_one_that_may_override_counts(ours: GatewayProcess) -> None:
    shutil.copytree(STRANGERS / "plugins" / "toolmaker-too", ours.home.plugins / "toolmaker-too")
    entries = {"toolmaker-too": {"allow_tool_override": True}}
    enabled = ["warden", "toolmaker", "borrower", "toolmaker-too"]
    ours.home.hermes_config.write_text(json.dumps({**CONFIG, "plugins": {"enabled": enabled, "entries": entries}}))
    ours.call("hooks.reload")
    ours.until(lambda: info(ours, "toolmaker-too")["state"] == "loaded")
    ours.say("view", "view")
    assert last_result(ours, "view") == "another view"
    said = info(ours, "toolmaker")["findings"]
    assert "toolmaker: tool make_snapshot is also brought by toolmaker-too; one of them counts" in said


def test_one_that_writes_its_own_code_is_not_loaded_anew_without_end(ours: GatewayProcess) -> None:
    folder, loads = ours.home.plugins / "scribe", ours.home.root / "loads"
    folder.mkdir()
    (folder / "__init__.py").write_text(SCRIBE)
    (folder / "plugin.yaml").write_text("name: scribe\n")
    ours.call("hooks.enable", {"name": "scribe"})
    ours.until(lambda: "it changes its own code as it is loaded" in info(ours, "scribe")["reason"], 60)
    assert len(loads.read_text()) <= 10
    assert ours.say("/scribe", "scribe")["reply"] == "written"
