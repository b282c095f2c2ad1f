"""Detached processes of hooks end with the hook, with the gateway, and with the next one after a crash."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from gateway.worker.process_tree import read_process
from tests.hooks.test_fork_server_daemon import wait_for_fork_server

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

LEAVE = """
import json, os, subprocess, sys
def leave(name):
    seen = os.environ["HERMES_HOME"] + "/left-" + name
    if os.path.exists(seen):
        return
    with open(seen, "w") as file:
        for start in ("setsid sh -c 'echo $$; exec sleep 3600'", "(setsid sh -c 'echo $$; exec sleep 3600' &)"):
            subprocess.Popen(["/bin/sh", "-c", start], stdout=file)
"""
HANDLER = f"{LEAVE}\ndef handle(event_type, context): leave('handler')\n"
LASTING = f"#!/usr/bin/env python3\n{LEAVE}\nleave('lasting')\nfor line in sys.stdin: pass\n"
ONESHOT = f"#!/usr/bin/env python3\n{LEAVE}\nleave('oneshot')\nimport time\ntime.sleep(60)  # with its end all ends\n"
HOOKS = ("handler", "lasting", "oneshot")
EACH = 2  # processes that a hook leaves behind


class Home:
    """A gateway whose hooks leave processes behind."""

    def __init__(self, root: Path) -> None:
        self.gateway = gateway = GatewayProcess(root / "home")
        gateway.script({"user": "hello", "answers": [{"text": "well"}]})
        for name, program in (("lasting", LASTING), ("oneshot", ONESHOT)):
            manifest = f"events: [message:received]\ncommand: [./hook]\n{'protocol: oneshot' * (name == 'oneshot')}\n"
            made = root / name
            made.mkdir()
            (made / "HOOK.yaml").write_text(manifest)
            (made / "hook").write_text(program)
            (made / "hook").chmod(0o755)
            gateway.add_hook(name, made)
        gateway.add_hook("handler", {"HOOK.yaml": "events: [message:received]\n", "handler.py": HANDLER})
        self.left: list[int] = []

    def start(self) -> None:
        gateway = self.gateway
        gateway.start()
        gateway.say("hello")
        gateway.until(lambda: all(len(self.started(name)) == EACH for name in HOOKS))
        self.left = [pid for name in HOOKS for pid in self.started(name)]
        assert self.alive() == self.left

    def started(self, name: str) -> list[int]:
        file = self.gateway.home.root / f"left-{name}"
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []

    def alive(self) -> list[int]:
        return [pid for pid in self.left if (now := read_process(pid)) and not now.is_zombie]


@contextmanager
def running(root: Path) -> Iterator[Home]:
    home = Home(root)
    try:
        with home.gateway:
            home.start()
            yield home
    finally:
        for pid in home.alive():
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with running(tmp_path) as home:
        yield home


def test_what_a_hook_left_behind_ends_when_the_hook_is_removed(home: Home) -> None:
    for name in HOOKS:
        shutil.rmtree(home.gateway.home.hooks / name)
    home.gateway.until(lambda: not home.alive())


def test_what_hooks_left_behind_ends_with_the_gateway(home: Home) -> None:
    code, _, _ = home.gateway.stop()
    assert code == 0
    assert not home.alive()


def test_what_a_killed_gateway_left_behind_ends_with_the_next_start_and_nothing_else_does(
    home: Home, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running(tmp_path_factory.mktemp("other")) as other:
        os.kill(wait_for_fork_server(home.gateway), signal.SIGKILL)
        home.gateway.kill()
        assert home.alive()
        home.gateway.start()
        assert not home.alive()
        assert other.alive() == other.left


def test_what_a_worker_left_behind_ends_though_the_fork_server_was_killed(home: Home) -> None:
    mine = set(home.started("handler"))
    os.kill(wait_for_fork_server(home.gateway), signal.SIGKILL)
    home.gateway.until(lambda: not mine & set(home.alive()))
