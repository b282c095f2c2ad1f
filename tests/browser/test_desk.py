"""The sessions of a person's own agents on the page: what was asked, and who answered it, where."""

import socket
import threading

import pytest
from playwright.sync_api import expect

from gateway.testing import GatewayProcess
from tests.browser.conftest import OpenScreen
from tests.browser.screen import PATIENCE
from tests.desk.desk_program import make_call, make_event

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

GUARD = """
from gateway.hooks import Deny
def handle(event_type, context):
    if context["platform"] == "desk" and "push" in context["args"]["command"]:
        raise Deny("nothing is pushed here")
"""


def ask(gateway: GatewayProcess, text: str, event: str) -> bytes:
    """Ask as the command of a program does, and return the answer."""
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(str(gateway.home.desk_socket))
        one.sendall(f"claude {event} 1 {len(text.encode())}\n{text}".encode())
        return b"".join(iter(lambda: one.recv(65536), b""))


def test_a_session_of_a_desk_stands_beside_the_conversations(gateway: GatewayProcess, open_screen: OpenScreen) -> None:
    gateway.add_hook("no-push", {"HOOK.yaml": "intercepts: [tool:before]\n", "handler.py": GUARD})
    gateway.until(lambda: gateway.call("hooks.info", {"name": "no-push"})["state"] == "loaded")
    assert b"nothing is pushed here" in ask(gateway, make_call(command="git push"), "PreToolUse")
    asker = threading.Thread(target=ask, args=(gateway, make_event("PermissionRequest"), "PermissionRequest"))
    asker.start()
    gateway.until(lambda: bool(list_open(gateway)))
    gateway.call("approvals.answer", {"id": list_open(gateway)[0]["id"], "allowed": True})
    asker.join()
    with open_screen() as screen:
        screen.enter("conversations", "Claude Code in /home/ann/proj")
        screen.room.get_by_role("link", name="Claude Code in /home/ann/proj").click()
        denied = screen.room.get_by_role("article").filter(has_text="Denied by no-push")
        expect(denied).to_contain_text("nothing is pushed here", timeout=PATIENCE)
        expect(screen.room).to_contain_text("Claude Code asks.")
        expect(screen.room.get_by_role("article").filter(has_text="Allowed by")).to_contain_text("terminal")
        assert screen.faults == screen.list_barriers() == []


def list_open(gateway: GatewayProcess) -> list[dict[str, str]]:
    found: list[dict[str, str]] = gateway.call("approvals.list")["approvals"]
    return [one for one in found if one["platform"] == "desk"]
