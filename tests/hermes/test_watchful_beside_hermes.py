"""Guards that see by way of what is around them, in Hermes's own gateway and here: the same is stopped."""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.hermes.shim.tool_names import HERMES_TOOLS
from gateway.hermes.shim.tool_registry import registry, resolve_toolset, tool_error, tool_result, validate_toolset
from gateway.testing import GatewayProcess
from tests.hermes.test_hooks_beside_hermes import SCRIPT, SIDE, seen_in
from tests.hermes.test_newcomers import states
from tests.hermes.test_plugins_beside_hermes import environ_of, hermes, run

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(420), pytest.mark.thorough]

__all__ = ["hermes"]  # the fixture

WATCHFUL = Path(__file__).with_name("watchful")
PLUGINS = sorted(path.name for path in (WATCHFUL / "plugins").iterdir())

ASIDE = ("_aside", ".aside", "aside.bak", "aside~")
SAYS = """
import json, os, pathlib

def handle(event_type, context):
    seen = pathlib.Path(os.environ["HERMES_HOME"], "seen")
    seen.mkdir(exist_ok=True)
    (seen / (pathlib.Path(__file__).parent.name + ".jsonl")).write_text(json.dumps(event_type) + "\\n")
"""

Seen = dict[str, list[Any]]


class Told(NamedTuple):
    """The records of hooks and plugins, and the reports about the folders set aside."""

    seen: Seen
    listed: dict[str, Any]
    checked: str
    doctor: dict[str, Any]
    switched: str


def furnish(home: Path) -> None:
    shutil.copytree(WATCHFUL / "hooks", home / "hooks")
    shutil.copytree(WATCHFUL / "plugins", home / "plugins")
    for name in ASIDE:
        plant(home / "hooks" / name, {"HOOK.yaml": "name: aside\nevents: [agent:start]\n", "handler.py": SAYS})


def plant(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)


@pytest.fixture(scope="module")
def theirs(hermes: Path, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    home = tmp_path_factory.mktemp("hermes")
    furnish(home)
    environ = environ_of(home, GATEWAY_ALLOW_ALL_USERS="1")
    done = run([str(hermes), str(SIDE), "use a tool"], env=environ, cwd=home)
    assert "answers" in done.stdout, done.stderr[-3000:]
    return seen_in(home)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Told:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        gateway.script(*SCRIPT, settings="tools: {shell: allow}\n")
        furnish(gateway.home.root)
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": PLUGINS}}))
        gateway.start()
        gateway.until(lambda: states(gateway).get("dawn") == "loaded")
        gateway.say("use a tool")
        gateway.until(lambda: len(seen_in(gateway.home.root).get("ledger", ())) == 2)
        gateway.until(lambda: "surroundings" in seen_in(gateway.home.root))
        listed = {one["name"]: one for one in gateway.call("hooks.list")["hooks"]}
        rows = json.loads(gateway.cli("doctor", "--hermes", "--json").stdout)["hermes"]
        doctor = {row["name"]: row for row in rows if row["what"] in ("hook", "plugin")}
        (gateway.home.hooks / "aside~").rename(gateway.home.hooks / "aside")
        gateway.until(
            lambda: {"aside": "loaded"}.items() <= states(gateway).items() and "aside~" not in states(gateway)
        )
        checked, switched = gateway.cli("hooks", "check", "_aside"), gateway.cli("hooks", "enable", "_aside")
        gateway.stop()
        return Told(seen_in(gateway.home.root), listed, checked.stdout, doctor, switched.stderr)


def test_a_guard_knows_what_a_hook_has_noted_of_the_turn(theirs: Seen, ours: Told) -> None:
    assert ["terminal", True, True] in theirs["ledger"]
    assert sorted(map(str, ours.seen["ledger"])) == sorted(map(str, theirs["ledger"]))


def test_a_guard_knows_a_tools_set_and_what_the_configuration_says(theirs: Seen, ours: Told) -> None:
    assert ["read_file", True, True] in theirs["ledger"]
    assert ["read_file", True, True] in ours.seen["ledger"]


def test_the_environment_says_whose_turn_it_is(theirs: Seen, ours: Told) -> None:
    assert theirs["surroundings"] == ours.seen["surroundings"] == [[True, "1", "1", "1"]]


def test_a_guard_that_a_timer_registers_is_asked(theirs: Seen, ours: Told) -> None:
    assert theirs["dawn"][0] == ours.seen["dawn"][0] == "terminal"
    assert ours.listed["dawn"]["intercepts"] == ["tool:before"]


def test_tools_are_in_the_same_sets(hermes: Path, tmp_path: Path) -> None:
    asks = """
import json, model_tools, toolsets
from tools.registry import registry, tool_error, tool_result
sets = {name: toolsets.resolve_toolset(name) for name in registry.get_registered_toolset_names()}
known = [toolsets.validate_toolset(name) for name in ("file", "all", "nonsense")]
said = [tool_error("no", code=4), tool_result(a=1), tool_result([])]
print(json.dumps([registry.get_tool_to_toolset_map(), sets, known, *said]))
"""
    done = run([str(hermes), "-c", asks], env=environ_of(tmp_path), cwd=tmp_path)
    sets, tools, *rest = json.loads(done.stdout.splitlines()[-1])
    assert registry.get_tool_to_toolset_map().items() <= sets.items()
    here = set(registry.get_all_tool_names())
    for name in registry.get_registered_toolset_names():
        assert resolve_toolset(name) == [tool for tool in tools[name] if tool in here]
    assert rest[0] == [validate_toolset(name) for name in ("file", "all", "nonsense")]
    assert rest[1:] == [tool_error("no", code=4), tool_result(a=1), tool_result([])]
    assert here == HERMES_TOOLS.theirs & sets.keys(), "every tool of ours that Hermes has in its registry"


def test_what_hermes_loads_and_we_do_not_for_its_name_is_said(theirs: Seen, ours: Told) -> None:
    for name in ASIDE:
        assert name in theirs, "Hermes passes over no name"
        assert name not in ours.seen
        for said in (ours.listed[name], ours.doctor[name]):
            assert said.get("state", "off") in ("disabled", "off")
            assert "not loaded because of its name, and Hermes loads it" in str(said), name
    assert "not loaded because of its name" in ours.checked
    assert "cannot be switched on: it is not loaded because of its name" in ours.switched


@pytest.mark.parametrize(
    ("name", "patched"),
    [("house-rules", "subprocess.Popen.__init__"), ("quiet_audit", "the process by sys.addaudithook")],
)
def test_who_holds_hermess_whole_process_to_something_is_without_effect_here(
    theirs: Seen, ours: Told, name: str, patched: str
) -> None:
    assert theirs[name], "there it sees what the terminal starts"
    assert name not in ours.seen
    assert (ours.listed[name]["state"], ours.doctor[name]["verdict"]) == ("without effect", "without effect")
    for said in (ours.listed[name], ours.doctor[name]):
        assert f"it patches {patched}" in str(said)


def test_a_plugin_that_registers_nothing_does_not_pass_for_one_that_works(theirs: Seen, ours: Told) -> None:
    assert ours.doctor["hollow"]["verdict"] == "degrades"
    assert ours.listed["hollow"]["state"] == "without effect"
    for said in (ours.listed["hollow"], ours.doctor["hollow"]):
        assert "it registers nothing, so nothing here calls it" in str(said)
