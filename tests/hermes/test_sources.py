"""The places of hooks written for Hermes, the findings in their source, and the reloads of its configuration."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.config.home import Home
from gateway.hermes.dialects import infer_hermes_manifest
from gateway.hermes.sources import list_hermes_sources, list_plugin_folders
from gateway.hooks import HookRegistry
from gateway.hooks.manifests.manifest import Manifest
from tests.hooks.folders import workshop


def test_sources_are_equal_as_long_as_home_and_safe_mode_are_the_same(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert list_hermes_sources(home, {}) == list_hermes_sources(home, {})
    assert not any(one in list_hermes_sources(home, {"HERMES_SAFE_MODE": "1"}) for one in list_hermes_sources(home, {}))


def test_a_source_of_the_configuration_has_the_hooks_that_stand_there_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("hooks: {on_session_start: [{command: ./note.sh}]}\n")
    shell, webhooks = list_hermes_sources(Home(tmp_path), {})[-2:]
    assert [version.name for version in shell.list()] == ["shell-on_session_start-note"]
    assert shell.find("shell-on_session_start-note") == next(iter(shell.list()))
    assert shell.find("audit-log") is None
    assert list(webhooks.list()) == []


def test_a_category_that_goes_while_it_is_looked_at_is_no_fault(tmp_path: Path) -> None:
    """It ended the gateway: whoever moved such a folder away could be that fast."""
    home, plugin = Home(tmp_path), tmp_path / "plugins" / "security" / "guard"
    is_over = threading.Event()

    def come_and_go() -> None:
        while not is_over.is_set():
            plugin.mkdir(parents=True)
            (plugin / "plugin.yaml").touch()
            shutil.rmtree(plugin.parent)

    with ThreadPoolExecutor(1) as other:
        moving = other.submit(come_and_go)
        try:
            found = [len(list_plugin_folders(home)) for _ in range(2000)]
        finally:
            is_over.set()
        moving.result()
    assert {*found} <= {1, 2}


@pytest.mark.process
async def test_a_new_shell_hook_is_there_when_the_sources_are_gone_through_again(tmp_path: Path) -> None:
    yard = workshop.Home(tmp_path)
    (tmp_path / "block.sh").write_text("#!/bin/sh\n")
    (tmp_path / "block.sh").chmod(0o700)
    async with yard.serving(HookRegistry()) as service:
        await service.follow(list_hermes_sources(Home(tmp_path), {}))
        assert await service.status() == []
        (tmp_path / "config.yaml").write_text("hooks: {pre_tool_call: [{command: ./block.sh}]}\n")
        await service.follow(list_hermes_sources(Home(tmp_path), {}))
        assert [(one.name, one.state) for one in await service.status()] == [("shell-pre_tool_call-block", "pending")]
        (tmp_path / "config.yaml").write_text("hooks: {}\n")
        await service.follow(list_hermes_sources(Home(tmp_path), {}))
        assert await service.status() == []


def infer(source: str, *events: str) -> Manifest:
    return infer_hermes_manifest(Manifest(folder="x", name="x", events=events), {"handler.py": source.encode()})


@pytest.mark.row("T26")
def test_what_a_hermes_handler_reads_of_the_environment_is_declared_by_its_source() -> None:
    found = infer("import os\nA = os.environ['TOKEN']\nb = os.getenv(\"OTHER_KEY\", '')\nc = 'lower'\n")
    assert found.env == ("TOKEN", "OTHER_KEY")
    assert found.reading.found == ("TOKEN", "OTHER_KEY")
    assert infer("A = 'TOKEN'\n").env == ()
    assert infer("from decouple import config\nA = config('TOKEN')\n").env == ("TOKEN",)


def test_a_hermes_handler_that_sends_may_send() -> None:
    assert infer("from tools.send_message_tool import send_message_tool\n").uses == ("send",)


def test_a_hermes_handler_that_decides_about_commands_intercepts_them() -> None:
    found = infer("def handle(e, c): return {'decision': 'deny'}\n", "command:*", "agent:end")
    assert (found.events, found.intercepts) == (("agent:end",), ("command:*",))
    assert infer("def handle(e, c): pass\n", "command:*").events == ("command:*",)
