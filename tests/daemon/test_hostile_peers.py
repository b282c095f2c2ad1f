"""Peers that speak JSON to the gateway cannot delay it: the time of `status` shows it from outside."""

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.control import LINE_LIMIT
from gateway.testing import GatewayProcess
from tests.http_server import QuietHandler, serving
from tests.waits import measure_both_waits

pytestmark = pytest.mark.process

ROUNDS = 3
QUICK = 1.0  # seconds in which `status` answers, whatever is said meanwhile
COUNT = 95_000
# Numbers that a decoder of JSON may read at 10 µs apiece, those that it reads at 60 µs, and a heap of values.
NUMBERS = b"[" + b",".join([b"1.7976931348623158079372897e308"] * COUNT) + b"]"
DIGITS = b"[" + b",".join([b"1" * 4000] * 1800) + b"]"
HEAP = b"[" + b",".join([b"{}"] * 2_500_000) + b"]"
SAYS_NUMBERS = f"b'[' + b','.join([b'1.7976931348623158079372897e308'] * {COUNT}) + b']'"
SKIPS = "intercepts: [message:received]\non_error: skip\n"
WORKER = f"""
import os
def handle(event, context):
    for number in range(4):
        line = b'{{"id":77,"result":' + {SAYS_NUMBERS} + b'}}\\n'
        while line:
            try:
                line = line[os.write(1000, line[:65536]):]
            except BlockingIOError:
                pass
"""
PROGRAM = f"""#!{sys.executable}
import sys
sys.stdout.buffer.write(b'{{"text":' + {SAYS_NUMBERS} + b'}}')
"""


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """The URL of a server of hooks that answers everything with this."""

    class Answer(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 - as the library calls it
            self.rfile.read(int(self.headers["content-length"]))
            self.answer(body)

    with serving(Answer) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


def slowest_status(gateway: GatewayProcess, doing: Callable[[], object]) -> float:
    """While that is done; it is done again where this machine may have stood still."""
    took = [measure_slowest(gateway, doing)]
    while min(took) >= QUICK and len(took) < ROUNDS:
        took.append(measure_slowest(gateway, doing))
    return min(took)


def measure_slowest(gateway: GatewayProcess, doing: Callable[[], object]) -> float:
    assert gateway.process
    work, slowest, pid = threading.Thread(target=doing), 0.0, gateway.process.pid
    work.start()
    while work.is_alive():
        began, waited = time.monotonic(), measure_both_waits(pid)
        assert gateway.call("status")["state"] == "ready"
        slowest = max(slowest, time.monotonic() - began - (measure_both_waits(pid) - waited))
    return slowest


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "hello", "answers": [{"text": "hi"}]})
        yield gateway


def say_hello(gateway: GatewayProcess) -> None:
    assert gateway.say("hello")["reply"] == "hi"


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"HOOK.yaml": SKIPS, "handler.py": WORKER}, id="worker"),
        pytest.param(
            {
                "HOOK.yaml": f"{SKIPS}command: [{sys.executable}, ./say]\nprotocol: oneshot\n",
                "say": PROGRAM,
            },
            id="program",
        ),
    ],
)
def test_what_a_hook_says(gateway: GatewayProcess, files: dict[str, str]) -> None:
    gateway.add_hook("hostile", files)
    gateway.start()
    gateway.until(lambda: gateway.call("hooks.info", {"name": "hostile"})["state"] == "loaded")
    assert slowest_status(gateway, lambda: say_hello(gateway)) < QUICK


@pytest.mark.parametrize("result", [NUMBERS, DIGITS, HEAP], ids=["numbers", "digits", "heap"])
def test_what_a_server_of_hooks_says(gateway: GatewayProcess, result: bytes) -> None:
    with answering(b'{"id":1,"result":{"text":' + result[: 3 << 20].rpartition(b",")[0] + b"]}}") as url:
        gateway.add_hook("hostile", {"HOOK.yaml": f"{SKIPS}url: {url}\n"})
        gateway.start()
        gateway.until(lambda: gateway.call("hooks.info", {"name": "hostile"})["state"] == "loaded")
        assert slowest_status(gateway, lambda: say_hello(gateway)) < QUICK


@pytest.mark.parametrize("content", [NUMBERS, DIGITS, HEAP], ids=["numbers", "digits", "heap"])
def test_what_a_model_says(gateway: GatewayProcess, content: bytes) -> None:
    with answering(b'{"choices":[{"message":{"content":' + content + b'},"finish_reason":"stop"}]}') as url:
        gateway.configure(f"model: {{provider: openai, name: m, base_url: '{url}'}}\n")
        gateway.start()
        assert slowest_status(gateway, lambda: gateway.say("hello")) < QUICK


@pytest.mark.parametrize("params", [NUMBERS, DIGITS, HEAP], ids=["numbers", "digits", "heap"])
def test_what_a_caller_of_the_control_socket_says(gateway: GatewayProcess, params: bytes) -> None:
    line = b'{"id":1,"method":"nothing","params":{"a":' + params + b"}}\n"
    assert len(line) < LINE_LIMIT

    def ask() -> None:
        with socket.socket(socket.AF_UNIX) as rude:
            rude.connect(str(gateway.home.socket))
            for _ in range(4):
                rude.sendall(line)
                assert b'"error"' in rude.makefile("rb").readline()

    gateway.start()
    assert slowest_status(gateway, ask) < QUICK
