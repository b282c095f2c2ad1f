"""Plugins that Hermes's configuration switches on and that did not move along: each is named, with what helps."""

import json
import shutil
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, wants
from tests.hermes.test_plugins_beside_hermes import environ_of, hermes, run

pytestmark = [pytest.mark.process, pytest.mark.thorough]

__all__ = ["hermes"]  # the fixture

SIDE = Path(__file__).with_name("hermes_side.py")
ITS_OWN, BLOCKS = "security-guidance", {"SECURITY_GUIDANCE_BLOCK": "1"}  # comes with hermes-agent, and refuses
WRITE = ("write_file", {"path": "a.py", "content": "import pickle\npickle.load(f)\n"})
GUARD = """
def register(ctx):
    ctx.register_hook("pre_tool_call", lambda **_: {"action": "block", "message": "not today"})
"""


def add_plugin(folder: Path, name: str) -> None:
    beside = folder.with_name(f".{folder.name}.new")
    beside.mkdir(parents=True)
    (beside / "plugin.yaml").write_text(f"name: {name}\n")
    (beside / "__init__.py").write_text(GUARD)
    beside.rename(folder)


def test_each_is_named_until_it_is_there(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(wants("keep", "remember", text="x"))
        add_plugin(gateway.home.plugins / "_under", "under")
        add_plugin(gateway.home.plugins / "folder", "called-so")
        enabled = ["observability/ghost", "under", "called-so", "gone"]
        settings = {"enabled": enabled, "disabled": ["gone", "called-so"]}
        gateway.home.hermes_config.write_text(json.dumps({"plugins": settings}))
        for name in ("memories/MEMORY.md", "pairing/telegram-approved.json"):
            path = gateway.home.root / name
            path.parent.mkdir()
            path.write_text("x")
        assert "plugins.enabled names observability/ghost" in gateway.cli("doctor").stdout
        gateway.start()
        found = {one["name"]: one for one in gateway.call("hooks.list")["hooks"] if one["origin"] == "config.yaml"}
        assert {name: one["state"] for name, one in found.items()} == {"ghost": "broken", "under": "broken"}
        assert "plugins.enabled names observability/ghost, and no plugin here is called so" in found["ghost"]["reason"]
        assert f"rename {gateway.home.plugins}/_under" in found["under"]["reason"]
        assert [said for said in gateway.call("status")["attention"] if "ghost is broken" in said]
        told = gateway.cli("doctor", "--hermes").stdout
        assert "plugins.enabled names observability/ghost" in told
        assert "say to the agent what it should remember" in told
        assert "people who were paired there ask again here" in told
        gateway.say("keep")
        assert "not today" not in last_result(gateway)
        (gateway.home.plugins / "_under").rename(gateway.home.plugins / "under")
        gateway.until(lambda: gateway.call("hooks.info", {"name": "under"})["state"] == "loaded")
        gateway.say("keep", "again")
        assert last_result(gateway, "again") == "not today"
        gateway.home.hermes_config.write_text("{}")
        gateway.call("hooks.reload")
        assert "ghost" not in {one["name"] for one in gateway.call("hooks.list")["hooks"]}


@pytest.mark.machine
@pytest.mark.timeout(600)
def test_one_that_came_with_hermes_does_here_what_it_did_there(hermes: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "hermes"
    theirs.mkdir()
    config = json.dumps({"plugins": {"enabled": [ITS_OWN]}})
    (theirs / "config.yaml").write_text(config)
    done = run([str(hermes), str(SIDE), json.dumps([WRITE])], env=environ_of(theirs, **BLOCKS), cwd=theirs)
    assert done.stdout.endswith("grey\n"), done.stderr[-2000:]
    assert not (theirs / "a.py").exists()
    where = run([str(hermes), "-c", "import plugins; print(plugins.__path__[0])"]).stdout.strip()
    with GatewayProcess(tmp_path / "home") as gateway:
        name, args = WRITE
        gateway.script(wants("write", name, **args))
        gateway.home.hermes_config.write_text(config)
        gateway.start(environ=BLOCKS)
        assert gateway.call("hooks.info", {"name": ITS_OWN})["state"] == "broken"
        shutil.copytree(Path(where) / ITS_OWN, gateway.home.plugins / ITS_OWN)
        gateway.until(lambda: gateway.call("hooks.info", {"name": ITS_OWN})["state"] == "loaded")
        gateway.say("write")
        assert last_result(gateway).startswith("security-guidance refused this write")
        assert list(gateway.home.own_folder.rglob("a.py")) == []
