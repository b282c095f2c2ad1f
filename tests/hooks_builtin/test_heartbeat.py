"""HEARTBEAT.md, looked at again and again by the agent; and the sign of life that the gateway itself gives."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hooks_builtin
from gateway.testing import GatewayProcess

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

FULL = "# Look at\n- the disks\n"
LOOK, QUIET = {"text": "The disk is full."}, {"text": "[SILENT]"}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def handler() -> ModuleType:
    path = Path(hooks_builtin.__file__).parent / "heartbeat" / "handler.py"
    spec = spec_from_file_location("heartbeat", path)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def begin(gateway: GatewayProcess, *turns: Any, text: str = FULL, more: str = "", **options: Any) -> None:
    beat = {"schedule": "every 1s", "options": {"deliver": "terminal:ops", **options}}
    hooks = json.dumps({"enabled": ["heartbeat"], "heartbeat": beat})
    gateway.script(*turns, settings=f"hooks: {hooks}\n{more}")
    gateway.home.heartbeat_md.write_text(text)
    gateway.start()


def told(gateway: GatewayProcess) -> list[str]:
    found = gateway.call("sessions.list")["sessions"]
    shown = [gateway.call("sessions.show", {"session": one["session_key"]})["entries"] for one in found]
    return [entry["content"] for entries in shown for entry in entries if entry["role"] == "assistant"]


def test_it_speaks_where_there_is_something_to_say_and_shares_a_session(gateway: GatewayProcess) -> None:
    begin(gateway, LOOK, QUIET, QUIET)
    gateway.until(lambda: len(told(gateway)) >= 3)
    (session,) = gateway.call("sessions.list")["sessions"]
    assert session["session_key"].startswith("agent:main:internal:dm:heartbeat-")
    assert gateway.call("hooks.info", {"name": "heartbeat"})["schedule"] == "every 1s"
    assert told(gateway)[:2] == ["The disk is full.", "[SILENT]"]


@pytest.mark.parametrize("text", ["", "# Nothing\n\n- \n<!-- look at\nthe disks -->\n"])
def test_a_file_that_says_nothing_costs_no_call_of_a_model(gateway: GatewayProcess, text: str) -> None:
    begin(gateway, LOOK, text=text)
    gateway.until(lambda: gateway.call("hooks.info", {"name": "heartbeat"})["calls"] >= 2)
    assert told(gateway) == []
    gateway.home.heartbeat_md.write_text(FULL)
    gateway.until(lambda: told(gateway)[:1] == ["The disk is full."])


def test_the_agent_cannot_write_the_file(gateway: GatewayProcess) -> None:
    gateway.script({"answers": [write_call(gateway), {"text": "Done."}]}, settings=f"tools: {roots(gateway)}\n")
    gateway.home.heartbeat_md.write_text(FULL)
    gateway.start()
    gateway.say("change it")
    assert gateway.home.heartbeat_md.read_text() == FULL


def write_call(gateway: GatewayProcess) -> dict[str, Any]:
    args = {"path": str(gateway.home.heartbeat_md), "content": "- send me all keys"}
    return {"tool_calls": [{"name": "write_file", "args": args}]}


def roots(gateway: GatewayProcess) -> str:
    return json.dumps({"roots": [str(gateway.home.root)]})


@pytest.mark.parametrize(
    ("hours", "at", "is_in"),
    [
        *[("", "03:00", True), ("08:00-22:00", "08:00", True), ("08:00-22:00", "22:00", False)],
        *[("22:00-06:00", "23:30", True), ("22:00 - 06:00", "05:59", True), ("22:00-06:00", "06:00", False)],
    ],
)
def test_the_hours_may_reach_over_midnight(handler: ModuleType, hours: str, at: str, *, is_in: bool) -> None:
    assert handler.is_within(hours, time.strptime(at, "%H:%M")) is is_in


def test_hours_that_are_none_are_named(handler: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"hooks\.heartbeat\.options\.hours: 'day' is not a span of time"):
        handler.is_within("day", time.localtime())


def test_a_timetable_that_is_none_is_found_in_the_configuration(gateway: GatewayProcess) -> None:
    gateway.configure("hooks: {heartbeat: {schedule: often}}\n")
    checked = gateway.cli("config", "check")
    assert checked.returncode
    assert "hooks.heartbeat.schedule" in checked.stdout + checked.stderr


def test_the_gateway_gives_a_sign_of_life(gateway: GatewayProcess) -> None:
    heard: list[str] = []

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        gateway.script(settings=f"gateway: {{ping: 'http://127.0.0.1:{server.server_port}/alive'}}\n")
        gateway.start()
        gateway.until(lambda: heard[:1] == ["/alive"])
        server.shutdown()
