"""A tool that wants a guard away: whatever it does to its folder, the guard stays until a person has said otherwise.

None of this shows in the times of the guard's own files: those were made before, or are not touched at all.
"""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.hermes.config import HermesConfig
from gateway.hermes.sources import make_plugin_source
from gateway.hooks.folders.kept_hooks import REGISTRATIONS_FILE, KeptHooks
from gateway.hooks.manifests.installed import HooksLock
from gateway.hooks.places.installed_source import InstalledSource
from gateway.turn_marks import ToolTimes, TurnMarks
from tests.hooks.folders.test_reach import lock
from tests.hooks.folders.test_unwell_guards import ALLOWS, HANDLER, MANIFEST, PLUGIN, Guarded
from tests.hooks.folders.workshop import Home, hook_of
from tests.spine import SetClock, until

pytestmark = pytest.mark.process


@pytest.fixture
def guarded(home: Home) -> Guarded:
    return Guarded(home)


def prepare(place: Path, name: str) -> Path:
    """A folder in which the guard allows all."""
    folder = place / name
    folder.mkdir(parents=True)
    (folder / "HOOK.yaml").write_text(MANIFEST % name)
    (folder / "handler.py").write_text(ALLOWS)
    return folder


def lay_link(hooks: Path, prepared: Path) -> None:
    shutil.rmtree(hooks / "guard")
    (hooks / "guard").symlink_to(prepared / "guard")


def swap_place(hooks: Path, prepared: Path) -> None:
    hooks.rename(hooks.with_name("aside"))
    prepared.rename(hooks)


def link_place(hooks: Path, prepared: Path) -> None:
    hooks.rename(hooks.with_name("aside"))
    hooks.symlink_to(prepared)


def link_empty_place(hooks: Path, prepared: Path) -> None:
    hooks.rename(hooks.with_name("aside"))
    hooks.symlink_to(prepared / "guard" / "empty")


def switch_off(hooks: Path, _: Path) -> None:
    with (hooks / "guard" / "HOOK.yaml").open("a") as manifest:
        manifest.write("enabled: false\n")


def empty_place(hooks: Path, _: Path) -> None:
    hooks.rename(hooks.with_name("aside"))
    hooks.mkdir()


def rename(hooks: Path, _: Path) -> None:
    (hooks / "guard").rename(hooks / "guard.bak")


TAKES = [lay_link, swap_place, link_place, link_empty_place, empty_place, switch_off, rename]


@pytest.mark.parametrize("take", TAKES)
async def test_a_guard_that_a_tool_takes_away_waits_for_a_person(
    home: Home, take: Callable[[Path, Path], None]
) -> None:
    guarded = Guarded(home)
    guarded.plant("guard")
    prepared = prepare(home.root / "prepared", "guard").parent
    (prepared / "guard" / "empty").mkdir()
    async with guarded.serving():
        assert not await guarded.list_open()
        await until(lambda: time.time() - prepared.stat().st_ctime > 0.1)  # it is not from the time of the tool
        with guarded.tools.running():
            take(home.hooks, prepared)
        await until(lambda: "at work" in hook_of(guarded.service, "guard").process.reason)
        assert not await guarded.list_open(), "while it runs"
    async with guarded.serving():
        assert not await guarded.list_open(), "after a start"


def test_a_change_is_a_tools_though_the_clock_was_set_back_meanwhile() -> None:
    clock = SetClock(1000.0)
    tools = ToolTimes(clock)
    with tools.running():
        clock.now = 400.0
        assert tools.may_have_changed(400.0)
    assert tools.may_have_changed(401.0)
    assert not tools.may_have_changed(390.0)
    assert not tools.may_have_changed(1010.0)


@pytest.mark.parametrize("text", ['{"version": 1, "hooks": {}}', "{", None])
async def test_an_installed_guard_that_a_tool_takes_out_of_the_lock_waits_for_a_person(home: Home, text: str) -> None:
    guarded, file = Guarded(home), home.root / "hooks.lock"
    home.hooks = home.root / "installed"
    home.plant("guard@1", "intercepts: [tool:before]\non_error: deny\n", HANDLER)
    lock(home, "guard", "installed/guard@1", intercepts=["tool:before"], on_error="deny")
    guarded.names = ["guard"]
    guarded.list_sources = lambda: [InstalledSource(home.hooks, "installed", lock=HooksLock(file), placed=())]
    async with guarded.serving():
        assert not await guarded.list_open()
        with guarded.tools.running():
            file.unlink() if text is None else file.write_text(text)
        await until(lambda: hook_of(guarded.service, "guard").process.reason)
        assert not await guarded.list_open(), "while it runs"
    async with guarded.serving():
        assert not await guarded.list_open(), "after a start"


@pytest.mark.parametrize("text", ["{", '{"guard": 1}', None])
async def test_where_neither_the_hook_nor_the_memory_says_what_it_guarded_it_guards_every_tool(
    guarded: Guarded, text: str | None
) -> None:
    guarded.plant("guard")
    async with guarded.serving():
        assert not await guarded.list_open()
    (guarded.home.hooks / "guard" / "HOOK.yaml").write_text("intercepts: [")
    memory = guarded.home.environment().state / REGISTRATIONS_FILE
    memory.unlink() if text is None else memory.write_text(text)
    async with guarded.serving():
        assert not await guarded.list_open(["guard", "another"])
        guarded.home.plant("new", "intercepts: [", HANDLER)
        await until(lambda: guarded.service.has("new"))
    async with guarded.serving():
        assert not await guarded.list_open(["guard", "another"]), "after another start"
        await guarded.service.forget("guard")
        assert await guarded.list_open() == ["guard"], "nor does one that came since"


def test_the_memory_of_0_1_0_is_read(guarded: Guarded) -> None:
    environment = guarded.home.environment()
    old = {"folder": "guard", "name": "guard", "intercepts": ["tool:before"], "guards": ["tool:before"], "hermes": True}
    environment.state.mkdir()
    (environment.state / REGISTRATIONS_FILE).write_text(json.dumps({"guard": {"manifest": old}}))
    kept = KeptHooks(environment, is_new=False).get("guard")
    assert kept is not None
    assert kept.manifest is not None
    assert kept.dialect == "hermes"
    assert kept.manifest.reading.guards == ("tool:before",)


def serve_plugin(guarded: Guarded) -> Path:
    """A plugin is the guard; returns the file that says if it is on."""
    root = guarded.home.root
    folder, config = root / "plugins" / "guard", root / "config.yaml"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("name: guard\n")
    (folder / "__init__.py").write_text(PLUGIN % "guard")
    config.write_text("plugins: {enabled: [guard]}")
    guarded.names = ["guard"]
    guarded.list_sources = lambda: [make_plugin_source(root / "plugins", "plugins", HermesConfig(config))]
    return config


@pytest.mark.parametrize("text", ["plugins: {enabled: [other]}", "plugins: {enabled: [guard], disabled: [guard]}"])
async def test_a_plugin_that_a_tool_switches_off_waits_for_a_person(guarded: Guarded, text: str) -> None:
    config = serve_plugin(guarded)
    async with guarded.serving():
        assert not await guarded.list_open()
        with guarded.tools.running():
            config.write_text(text)
        await until(lambda: "hooks enable guard" in hook_of(guarded.service, "plugin:guard").process.reason)
        assert not await guarded.list_open(), "while it runs"
    async with guarded.serving():
        assert not await guarded.list_open(), "after a start"
        await guarded.service.trust("guard")
        assert await guarded.list_open() == ["guard"], "somebody agreed to it"
        await guarded.service.switch("guard", enabled=True)
        assert not await guarded.list_open()


async def test_a_plugin_that_a_person_switched_off_is_off_whatever_a_tool_changes_there_later(guarded: Guarded) -> None:
    config = serve_plugin(guarded)
    async with guarded.serving():
        assert not await guarded.list_open()
        config.write_text("plugins: {enabled: [other]}")
        await guarded.service.reload()
        assert await guarded.list_open() == ["guard"]
        with guarded.tools.running():
            config.write_text("plugins: {enabled: [another]}")
        await guarded.service.reload()
        assert await guarded.list_open() == ["guard"]


async def test_a_guard_that_a_tool_changes_before_it_kills_the_gateway_waits_for_a_person(home: Home) -> None:
    guarded, marks = Guarded(home), TurnMarks(home.root / "marks")
    guarded.plant("guard")
    async with guarded.serving():
        assert not await guarded.list_open()
    marks.open()
    with marks.changing_files():
        (home.hooks / "guard" / "handler.py").write_text(ALLOWS)
        after = TurnMarks(home.root / "marks")
        after.open()
    guarded.tools = after.tools
    async with guarded.serving():
        assert not await guarded.list_open()
        assert "hooks trust guard" in hook_of(guarded.service, "guard").process.reason
    after.close()
    later = TurnMarks(home.root / "marks")
    later.open()
    assert not later.tools.may_have_changed(time.time())
