"""Pages that are written to be hard to read, and a gateway that does not notice."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gateway.errors import GatewayError
from gateway.testing import GatewayProcess
from tests.http_server import QuietHandler, serving
from tests.waits import measure_both_waits

pytestmark = pytest.mark.process

SERVER = Path(__file__).parent.parent / "agent" / "mcp" / "toolserver.py"

SILENT = "/silent"  # who asks for it gets no answer
ROUNDS = 3  # the machine may stand still, but not in each of them
QUICK = 1.0  # seconds in which `status` answers, whatever is read meanwhile
PAGES = {
    "hidden tags": (b"<svg>" * 60_000 + b"</style>" * 60_000, "text/html"),
    "comments": (b"<!--" * 200_000, "text/html"),
    "instructions": (b"<?" * 400_000, "text/html"),
    "end tags": (b"</a " * 200_000, "text/html"),
    "sections": (b"<![CDATA[" * 100_000, "text/html"),
    "charset": (b"a-" * 200_000, "text/html; charset=punycode"),
}


@contextmanager
def serving_pages() -> Iterator[tuple[int, list[str]]]:
    """A server on loopback with these pages by number, and who asked for which."""
    asked: list[str] = []
    over = threading.Event()

    class Answer(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - as the library calls it
            asked.append(self.path)
            if self.path == SILENT:
                over.wait()
                return
            self.answer(*list(PAGES.values())[int(self.path[1:])])

    with serving(Answer) as server:
        try:
            yield server.server_port, asked
        finally:
            over.set()


def slowest_status(gateway: GatewayProcess, until: threading.Thread) -> float:
    assert gateway.process
    slowest, pid = 0.0, gateway.process.pid
    while until.is_alive():
        began, waited = time.monotonic(), measure_both_waits(pid)
        assert gateway.call("status")["state"] == "ready"
        slowest = max(slowest, time.monotonic() - began - (measure_both_waits(pid) - waited))
        time.sleep(0.02)
    return slowest


def check_that_status_answers(gateway: GatewayProcess, text: str, reply: str) -> int:
    """In time while this is said, in one of a few rounds at least; returns how many it took."""
    for number in range(1, ROUNDS + 1):
        said: list[object] = []
        talk = threading.Thread(target=lambda heard=said: heard.append(gateway.say(text)["reply"]))
        talk.start()
        slowest = slowest_status(gateway, talk)
        assert said == [reply]
        if slowest < QUICK:
            return number
    pytest.fail(f"status took {slowest:.1f} s, and no less in any round")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GatewayProcess, list[str]]]:
    """Yield a gateway that reads the page with a given number, and the requests for pages."""
    root = tmp_path_factory.mktemp("reader") / "home"
    with serving_pages() as (port, asked), GatewayProcess(root) as gateway:
        turns = [
            {
                "user": f"read {number}",
                "answers": [
                    {"tool_calls": [{"name": "web_fetch", "args": {"url": f"http://127.0.0.1:{port}/{number}"}}]},
                    {"text": f"done {number}"},
                ],
            }
            for number in range(len(PAGES))
        ]
        gateway.script(*turns, settings=f"tools:\n  fetch_hosts: ['127.0.0.1:{port}']\n")
        gateway.start()
        yield gateway, asked


@pytest.mark.parametrize("number", range(len(PAGES)), ids=list(PAGES))
def test_status_answers_within_a_second_while_a_page_is_read_that_cannot_be(reader, number):
    gateway, asked = reader
    before = len(asked)
    rounds = check_that_status_answers(gateway, f"read {number}", f"done {number}")
    assert asked[before:] == [f"/{number}"] * rounds


@pytest.mark.parametrize(
    "args", [{"name": "mcp_shop_tell", "args": {"size": 60_000_000}}, {"name": "mcp_shop_describe"}]
)
def test_status_answers_within_a_second_whatever_a_tool_server_says(tmp_path, args):
    program = f"command: {sys.executable}, args: [{SERVER}, stdio, {tmp_path / 'notes'}]"
    server = f"mcp_servers:\n  shop: {{{program}, trust: all}}\n"
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "ask", "answers": [{"tool_calls": [args]}, {"text": "done"}]}, settings=server)
        gateway.start()
        check_that_status_answers(gateway, "ask", "done")


def test_a_fetch_that_ended_one_life_is_not_repeated_in_the_next(tmp_path):
    with serving_pages() as (port, asked), GatewayProcess(tmp_path / "home") as gateway:
        fetch = {"name": "web_fetch", "args": {"url": f"http://127.0.0.1:{port}{SILENT}"}}
        turns = (
            {"user": "read it", "answers": [{"tool_calls": [fetch]}, {"text": "I leave it."}]},
            {"user": "and now", "answers": [{"text": "All is well."}]},
        )
        gateway.script(*turns, settings=f"tools:\n  fetch_hosts: ['127.0.0.1:{port}']\n")
        gateway.start()
        talk = threading.Thread(target=say_in_vain, args=(gateway, "read it"))
        talk.start()
        gateway.until(lambda: asked == [SILENT])
        gateway.kill()
        talk.join()
        gateway.start()
        assert gateway.say("and now")["reply"] == "All is well."
        assert asked == [SILENT]


def say_in_vain(gateway: GatewayProcess, text: str) -> None:
    with suppress(GatewayError, OSError):
        gateway.say(text)
