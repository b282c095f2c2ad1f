"""Folders from Hermes with all their surroundings: packages, helpers, variables, two things of one name."""

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

NEWCOMERS = Path(__file__).with_name("newcomers")
PLACE = Path("packages") / "plugin:moonlight"  # below what is kept of hooks: where `hooks deps` puts such a package
RUNTIME = {"XDG_RUNTIME_DIR": "/nowhere"}
DESKTOP = {"DISPLAY": ":7", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere", "SSH_AUTH_SOCK": "/nowhere"}
AROUND = {"BELL_TOKEN": "sesame", "BELL_SOUND": "dong", "OTHER_TOKEN": "for others", **DESKTOP, **RUNTIME}
SETTINGS = "hooks: {enabled: [twin, uses-common], quiet-counter: {env: [BELL_TOKEN]}}\n"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        gateway.script({"user": "hello", "answers": [{"text": "hello yourself"}]}, settings=SETTINGS)
        shutil.copytree(NEWCOMERS / "plugins", gateway.home.plugins)
        shutil.copytree(NEWCOMERS / "hooks", gateway.home.hooks)
        shutil.copytree(NEWCOMERS / "packages", gateway.home.hook_state / PLACE)
        gateway.start(environ=AROUND)
        gateway.until(lambda: states(gateway).get("twin") == states(gateway).get("plugin:twin") == "loaded", 60)
        yield gateway


def states(gateway: GatewayProcess) -> dict[str, str]:
    return {one["name"]: one["state"] for one in gateway.call("hooks.list")["hooks"] if one["origin"] != "built-in"}


def seen(gateway: GatewayProcess, name: str) -> list[Any]:
    path = gateway.home.root / "seen" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def last(gateway: GatewayProcess, name: str, count: int = 1) -> Any:
    """The last of the lines that it wrote of a turn that is made now."""
    before = len(seen(gateway, name))
    assert gateway.say("hello")["reply"] == "hello yourself"
    gateway.until(lambda: len(seen(gateway, name)) == before + count)
    return seen(gateway, name)[-1]


def test_a_hook_and_a_plugin_of_one_name_both_live(gateway: GatewayProcess) -> None:
    assert last(gateway, "plugin-twin", 2) == "post_llm_call"
    gateway.until(lambda: seen(gateway, "hook-twin") != [])
    info = {name: gateway.call("hooks.info", {"name": name}) for name in ("twin", "plugin:twin")}
    assert [one["origin"] for one in info.values()] == ["home", "plugins"]
    assert not any("is also called" in finding for one in info.values() for finding in one["findings"])


def test_the_short_name_is_the_hooks_and_the_plugins_while_there_is_none(gateway: GatewayProcess) -> None:
    assert gateway.call("hooks.info", {"name": "uses-common"})["origin"] == "plugins"
    assert gateway.call("hooks.info", {"name": "plugin:uses-common"})["name"] == "uses-common"
    gateway.call("hooks.disable", {"name": "twin"})
    assert (states(gateway)["twin"], states(gateway)["plugin:twin"]) == ("disabled", "loaded")
    gateway.call("hooks.enable", {"name": "twin"})
    pid = gateway.call("hooks.info", {"name": "plugin:twin"})["pid"]
    beside = gateway.home.hooks.with_name("beside")
    (gateway.home.hooks / "twin").rename(beside)
    gateway.until(lambda: "plugin:twin" not in states(gateway))
    now = gateway.call("hooks.info", {"name": "twin"})
    assert (now["origin"], now["pid"]) == ("plugins", pid), "it is the same plugin, and runs on"
    beside.rename(gateway.home.hooks / "twin")
    gateway.until(lambda: states(gateway).get("plugin:twin") == states(gateway).get("twin") == "loaded")


def test_the_configuration_tells_the_two_apart(gateway: GatewayProcess) -> None:
    told = gateway.cli("hooks", "disable", "plugin:twin")
    assert "config.yaml decides about plugin:twin" in told.stderr, "`hooks.enabled` means plugins"
    before = gateway.home.config.read_text()
    off = "hooks: {twin: {enabled: false}, plugin:uses-common: {enabled: false}, "
    reconfigure(gateway, before.replace("hooks: {", off))
    gateway.until(lambda: states(gateway)["twin"] == states(gateway)["uses-common"] == "disabled")
    assert states(gateway)["plugin:twin"] == "loaded"
    reconfigure(gateway, before)
    gateway.until(lambda: states(gateway)["twin"] == states(gateway)["uses-common"] == "loaded")


def reconfigure(gateway: GatewayProcess, text: str) -> None:
    gateway.configure(text)
    assert gateway.process
    gateway.process.send_signal(signal.SIGHUP)


def test_a_folder_of_helpers_is_no_plugin(gateway: GatewayProcess) -> None:
    assert not {"common", "plugin:common"} & states(gateway).keys()
    assert last(gateway, "uses-common", 2)[::2] == ["post_llm_call", "hello yourself"]


def test_a_plugin_that_is_a_package_is_off_until_somebody_switches_it_on(gateway: GatewayProcess) -> None:
    found = gateway.call("hooks.info", {"name": "moonlight"})
    assert (found["state"], found["origin"], found["version"]) == ("disabled", "packages", "2.1")
    assert found["description"] == "Knows the light of the moon"
    assert seen(gateway, "moonlight") == []
    gateway.call("hooks.enable", {"name": "moonlight"})
    gateway.until(lambda: states(gateway)["moonlight"] == "loaded")
    assert last(gateway, "moonlight", 2) == ["post_llm_call", "hello yourself"]
    assert gateway.say("/moonlight tonight")["reply"] == "waning tonight"
    assert gateway.say("/desktop")["reply"] == "[]", "a package has nothing of the desktop"


def test_a_package_in_the_folder_reads_its_variables_and_its_programs_reach_the_desktop(
    gateway: GatewayProcess,
) -> None:
    assert last(gateway, "desk-bell")[2:5] == ["sesame", "dong", ":7 unix:path=/nowhere"]


def test_who_starts_no_program_has_no_desktop_and_what_the_source_hides_is_named_in_the_configuration(
    gateway: GatewayProcess,
) -> None:
    assert last(gateway, "quiet-counter")[1] == {"BELL_TOKEN": "sesame", "SSH_AUTH_SOCK": None}


def test_a_broken_hook_names_the_package_and_the_command_that_helps(gateway: GatewayProcess) -> None:
    reason = gateway.call("hooks.info", {"name": "tabular"})["reason"]
    assert "ModuleNotFoundError: No module named 'no_such_tables'" in reason
    assert "the package no-such-tables is missing; run: hermes-gateway hooks deps tabular" in reason


def test_deps_for_a_plugin_that_is_not_there_says_what_a_plugin_is(gateway: GatewayProcess, tmp_path: Path) -> None:
    told = gateway.cli("hooks", "deps", "nobody", "six")
    assert "hook 'nobody' not found" in told.stderr
    assert "a plugin that is itself a package: hermes-gateway hooks deps plugin:nobody six" in told.stderr
    assert gateway.cli("hooks", "deps", "twin", "--", "--pre").returncode == 1


def test_doctor_loads_in_processes_that_reach_nothing(gateway: GatewayProcess, tmp_path: Path) -> None:
    told = tmp_path / "told"
    writes = f"""
import os
from pathlib import Path
networks = open("/proc/net/dev").read().count(":")
said = [os.environ["HERMES_HOME"], os.environ["BELL_TOKEN"], os.environ["HOME"], str(networks)]
Path({str(told)!r}).write_text(" ".join(said))
def handle(event_type, context): ...
"""
    folder = gateway.add_hook("tries", {"HOOK.yaml": "events: [reaction:added]\n", "handler.py": writes})
    gateway.until(lambda: states(gateway).get("tries") == "loaded")
    calls = gateway.call("hooks.info", {"name": "desk-bell"})["calls"]
    before = len(seen(gateway, "desk-bell"))
    environ = {**AROUND, "OTHER_TOKEN": "for others"}
    with gateway.spawn("doctor", "--hermes", "--load", "--json", environ=environ) as done:
        out, err = done.communicate()
    rows = {(row["what"], row["name"]): row for row in json.loads(out)["hermes"]}
    verdicts = {name: rows["hook", name]["verdict"] for name in ("desk-bell", "quiet-counter", "tabular", "tries")}
    assert verdicts == {"desk-bell": "works", "quiet-counter": "works", "tabular": "broken", "tries": "works"}, err
    assert any("hooks deps tabular" in why for why in rows["hook", "tabular"]["why"])
    assert not any("uploader" in why for why in rows["hook", "tabular"]["why"]), "scripts/ is not looked at"
    assert ("plugin", "common") not in rows
    assert rows["plugin", "uses-common"]["verdict"] == "works"
    home, token, own, networks = told.read_text().split()
    assert home == own != str(gateway.home.root)
    assert not Path(home).exists(), "it is thrown away"
    assert (token, networks) == ("placeholder", "1"), "no secret, and no network but the loopback of its own"
    assert len(seen(gateway, "desk-bell")) == before
    assert gateway.call("hooks.info", {"name": "desk-bell"})["calls"] == calls
    shutil.rmtree(folder)
