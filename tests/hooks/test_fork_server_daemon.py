"""Hooks after the end of their fork server, seen from outside: nothing gets past a guard, and all come back."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from gateway.worker.process_tree import find_children

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

GUARD = """
import asyncio
async def handle(event_type, context):
    await asyncio.sleep(0.1)
    return {"decision": "end", "reply": "guarded"}
"""
PEOPLE = 3
KILLS = 6  # more in a row than failures after which a hook is left alone


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("fork") / "home") as gateway:
        gateway.script({"user": "hello", "answers": [{"text": "let through"}]})
        manifest = "intercepts: [message:received]\non_error: deny\n"
        gateway.add_hook("guard", {"HOOK.yaml": manifest, "handler.py": GUARD})
        gateway.start()
        yield gateway


def test_a_gateway_has_a_fork_server_once_somebody_wants_it(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "hello", "answers": [{"text": "let through"}]})
        gateway.start()
        assert gateway.say("hello")["reply"] == "let through"
        assert find_fork_server(gateway) is None
        gateway.add_hook("guard", {"HOOK.yaml": "intercepts: [message:received]\n", "handler.py": GUARD})
        gateway.until(lambda: gateway.say("hello")["reply"] == "guarded")
        assert find_fork_server(gateway)
        gateway.stop()
        gateway.configure(gateway.home.config.read_text() + "hooks: {eager: 0}\n")
        gateway.start()
        assert gateway.call("hooks.info", {"name": "guard"})["state"] == "registered"
        assert wait_for_fork_server(gateway), "the hook's first event need not wait for it"


def find_fork_server(gateway: GatewayProcess) -> int | None:
    assert gateway.process
    for pid in find_children(gateway.process.pid):
        if read(pid, "comm") == "hook-forkserver":
            return pid
    return None


def read(pid: int, what: str) -> str:
    try:
        return Path(f"/proc/{pid}/{what}").read_text().strip()
    except OSError:
        return ""


def wait_for_fork_server(gateway: GatewayProcess, gone: int = 0) -> int:
    gateway.until(lambda: find_fork_server(gateway) not in (None, gone))
    found = find_fork_server(gateway)
    assert found
    return found


def test_however_often_the_fork_server_is_killed_each_message_is_guarded(gateway: GatewayProcess) -> None:
    replies: list[str] = []
    is_over = threading.Event()

    def talk(name: str) -> None:
        while not is_over.is_set():
            replies.append(gateway.say("hello", name)["reply"])

    people = [threading.Thread(target=talk, args=(f"person {n}",)) for n in range(PEOPLE)]
    for one in people:
        one.start()
    gone = 0
    for _ in range(KILLS):
        gone, seen = wait_for_fork_server(gateway, gone), len(replies)
        gateway.until(lambda seen=seen: len(replies) > seen + PEOPLE)  # type: ignore[misc]
        os.kill(gone, signal.SIGKILL)
    is_over.set()
    for one in people:
        one.join()
    assert set(replies) == {"guarded"}
    status = gateway.call("hooks.info", {"name": "guard"})
    assert (status["state"], status["failures"]) == ("loaded", 0)
    assert status["restarts"] >= KILLS - 1


def test_a_guard_that_a_stopped_fork_server_cannot_start_is_waited_for(gateway: GatewayProcess) -> None:
    stopped = wait_for_fork_server(gateway)
    gateway.until(lambda: bool(gateway.call("hooks.info", {"name": "guard"})["pid"]))
    worker = gateway.call("hooks.info", {"name": "guard"})["pid"]
    os.kill(stopped, signal.SIGSTOP)
    os.kill(worker, signal.SIGKILL)
    assert gateway.say("hello")["reply"] == "guarded"
    assert wait_for_fork_server(gateway) != stopped


def test_a_hook_takes_no_processor_from_the_fork_server_that_may_have_to_kill_it(gateway: GatewayProcess) -> None:
    gateway.say("hello")
    fork_server, worker = wait_for_fork_server(gateway), gateway.call("hooks.info", {"name": "guard"})["pid"]
    assert os.getsid(worker) == worker
    assert os.getsid(fork_server) == fork_server
    if read(worker, "autogroup"):
        gateway.until(lambda: read(worker, "autogroup").endswith(" nice 10"))
        assert read(fork_server, "autogroup").endswith(" nice 0")
