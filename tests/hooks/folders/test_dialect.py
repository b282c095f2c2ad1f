"""A made-up program's hooks: a dialect that knows the table alone has them found, read, called and shown."""

import configparser
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.daemon.dialects import make_folder_source
from gateway.events import Deny
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.manifests.manifest import Manifest, ParsedManifest
from gateway.hooks.places.dialect import Dialect, FolderClaim
from gateway.hooks.wires.oneshot_answer import ProgramFormat
from gateway.hooks.wires.wire import HookAnswer, HookFailed
from gateway.worker.protocol import CallMeta
from tests.hooks.folders.workshop import Home

WATCHES = {"tool": "tool:before", "end": "agent:end"}
RULE = "[watch]\nwhat = tool\nrun = ./judge\n"
# Its program says in words of its own what it makes of a tool.
JUDGE = """#!/usr/bin/env python3
import json, sys
asked = json.load(sys.stdin)
verdict = "never" if "secret" in json.dumps(asked["args"]) else "fine"
print(json.dumps({"verdict": verdict}))
"""


class WatchFormat(ProgramFormat):
    async def build_input(self, name: str, fields: Mapping[str, Any], folder: str, answers: Mapping[str, Any]) -> bytes:
        return json.dumps({"args": fields["args"]}).encode()

    def read_answer(
        self, name: str, fields: Mapping[str, Any], meta: CallMeta, ended: tuple[int, bytes, str]
    ) -> HookAnswer:
        code, said, _ = ended
        if code or not said:
            raise HookFailed("it barked", kind="raised")
        is_never = json.loads(said)["verdict"] == "never"
        return HookAnswer({"decision": "deny", "message": "bad dog"} if is_never else None)


class WatchDialect(Dialect):
    """`watch.ini` says which program is run, and at what."""

    name = label = "watchdog"
    markers = frozenset({"watch.ini"})
    environ: Mapping[str, str] = {"WATCHDOG": "1"}

    def read_manifest(self, folder: Path, name: str) -> ParsedManifest:
        said = configparser.ConfigParser()
        said.read(folder / "watch.ini")
        event, command = WATCHES[said["watch"]["what"]], (said["watch"]["run"],)
        how: dict[str, Any] = {"command": command, "protocol": "oneshot", "on_error": "deny"}
        return ParsedManifest(Manifest(folder=name, name=name, intercepts=(event,), **how))

    def claim(self, manifest: Manifest, files: Mapping[str, bytes]) -> FolderClaim:
        return FolderClaim(is_owner=True, reason="it has a watch.ini")

    def make_format(self, manifest: Manifest) -> ProgramFormat:
        return WatchFormat()


def plant(home: Home, judge: str = JUDGE) -> None:
    folder = home.hooks / "dog"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "watch.ini").write_text(RULE)
    (folder / "judge").write_text(judge)
    (folder / "judge").chmod(0o755)


async def ask(registry: HookRegistry, word: str) -> Any:
    told = await registry.run("tool:before", tool="shell", args={"command": word})
    return told.outcome


async def follow(service: FolderHooks, home: Home) -> None:
    places = make_folder_source(home.hooks, "home")
    await service.follow([replace(places, dialects=(*places.dialects, WatchDialect()))])


@pytest.mark.process
async def test_it_is_found_read_called_and_shown(tmp_path: Path) -> None:
    home, registry = Home(tmp_path), HookRegistry()
    plant(home)
    home.note("ours")
    async with home.serving(registry) as service:
        await follow(service, home)
        shown = await service.info("dog")
        assert (shown.intercepts, shown.wire, shown.on_error) == (("tool:before",), "command", "deny")
        assert (shown.written_for, shown.hermes) == ("watchdog: it has a watch.ini", False)
        assert (await ask(registry, "ls")) is None
        assert isinstance(denied := await ask(registry, "secret"), Deny)
        assert "bad dog" in str(denied)
        plant(home, "#!/bin/sh\nexit 3\n")
        await service.reload("dog")
        assert "it barked" in str(await ask(registry, "ls"))
        assert (await service.info("ours")).written_for.startswith("Hermes")


def list_entered(home: Home, name: str) -> set[str]:
    """List the files of Hermes's room with a function that is entered while this folder is found and read."""
    places, entered = make_folder_source(home.hooks, "home"), set[str]()
    sys.setprofile(lambda frame, _what, _about: entered.add(frame.f_code.co_filename))
    try:
        version = places.find(name)
        read = version and version.source.inspect(version)
    finally:
        sys.setprofile(None)
    assert read
    assert read.is_ready
    return {Path(file).name for file in entered if "/gateway/hermes/" in file}


def test_a_folder_with_a_key_of_ours_is_read_without_a_line_of_hermes(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.note("own", manifest="intercepts: [tool:before]\n")
    home.note("theirs", manifest="events: [agent:end]\n")
    assert list_entered(home, "own") == set()
    assert "written_for.py" in list_entered(home, "theirs")
