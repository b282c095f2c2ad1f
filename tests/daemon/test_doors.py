"""Callers of any kind at a running gateway: all are answered, and connected ones stay connected."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.control.callers import NO_FILES
from gateway.control.client import ControlClient, ControlError
from gateway.daemon.verb_table import VERBS
from gateway.errors import NotRunning
from gateway.testing import GatewayProcess

WRONG: tuple[Any, ...] = (None, True, -7, 10**30, 1.5, "", "\0", "x/../x", [], [1], {}, {"a": []})
ENDLESS = "events.tail"


def wrong_params(verb: str, params: type[msgspec.Struct]) -> Iterator[dict[str, Any]]:
    """Each parameter as everything that it may not be, beside others as they may be; one too many, and none."""
    fields = msgspec.structs.fields(params)
    right: dict[str, Any] = {field.name: True if field.name == "allowed" else "x" for field in fields if field.required}
    yield {"no-such-parameter": 1}
    if right:
        yield {}
    for field in fields:
        if verb != ENDLESS:
            yield from ({**right, field.name: value} for value in WRONG)
        else:
            yield from ({field.name: value} for value in WRONG if value is not None and not isinstance(value, list))


@pytest.mark.process
def test_no_verb_fails_inside_the_gateway_whatever_it_is_given(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start()
        told: dict[str, str] = {}
        with ControlClient(gateway.home.socket, 60) as client:
            for name, verb in VERBS.items():
                for given in wrong_params(name, verb.params):
                    try:
                        client.call(name, given)
                    except ControlError as error:
                        told[f"{name} {given}"] = str(error)
        _, _, logged = gateway.stop()
    assert {asked: said for asked, said in told.items() if "failed inside" in said} == {}
    assert "Traceback" not in logged
    assert len(told) > 5 * len(VERBS)
    assert "it takes name (text)" in told["hooks.info {'name': -7}"]
    assert "it takes no parameters" in told["status {'no-such-parameter': 1}"]
    assert "`$.limit`" in told["sessions.list {'limit': 1.5}"]


def list_open_files(pid: int) -> list[int]:
    return [int(one.name) for one in Path(f"/proc/{pid}/fd").iterdir()]


WITHOUT_FILES = """
import os, resource, anyio
from gateway.daemon.own_process import keep_orphans

async def main():
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_orphans, 0.01)
        await anyio.sleep(0.1)
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, free))
        await anyio.sleep(0.1)
        tasks.cancel_scope.cancel()
    print("goes on")

anyio.run(main)
"""


AMONG_THE_GREEDY = """
import os, resource, socket, sys, anyio
from gateway.control.listener import CallerListener

taken = []

def take_all():
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        pass

async def take_what_comes():
    while True:
        take_all()
        await anyio.lowlevel.checkpoint()

async def ask(caller):
    caller.connect(sys.argv[1])
    await anyio.wait_readable(caller)
    print(caller.recv(1000).decode(), end="")

async def main():
    first, *others = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    accepting = await anyio.create_unix_listener(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    take_all()
    async with anyio.create_task_group() as tasks:
        serve = CallerListener(accepting, str.encode).serve
        tasks.start_soon(serve, lambda stream: anyio.sleep_forever())
        await anyio.sleep(0.1)
        os.close(taken.pop())
        await ask(first)
        await anyio.sleep(0.1)
        tasks.start_soon(take_what_comes)
        for caller in others:
            await ask(caller)
        tasks.cancel_scope.cancel()

anyio.run(main)
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(WITHOUT_FILES, "goes on\n", id="who looks after orphans outlives it"),
        pytest.param(AMONG_THE_GREEDY, NO_FILES * 3, id="whoever comes is told so"),
    ],
)
def test_a_time_without_files(tmp_path: Path, program: str, said: str) -> None:
    command = [sys.executable, "-c", program, str(tmp_path / "socket")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == said, done.stderr


@pytest.mark.process
def test_a_gateway_that_can_open_no_more_files_keeps_all_connections_and_says_so_to_new_ones(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway, ExitStack() as stack:
        gateway.start()
        assert gateway.process
        pid = gateway.process.pid
        held = stack.enter_context(ControlClient(gateway.home.socket, 30))
        assert held.call("status")["state"] == "ready"
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = list_open_files(pid)
        most = max(used) + 1  # a file below it may be free: then some callers are let in first
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, before[1]))
        said = set()
        for _ in range(most - len(used) + 5):
            caller = stack.enter_context(ControlClient(gateway.home.socket, 30))
            try:
                caller.call("platform.list")
            except (ControlError, NotRunning) as error:
                said.add(str(error))
        assert held.call("platform.list")["platforms"] == []
        assert any("as many files open as it may" in words for words in said), said
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        gateway.until(lambda: gateway.call("status")["state"] == "ready")
        parts = {part["name"]: part["restarts"] for part in held.call("status")["parts"]}
        assert parts["control"] == 0
