"""The terminal as a network: a program that lost its line says a thing again, and it is one message."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.control.client import ControlClient
from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

KEY = "agent:main:terminal:dm:main"
TOO_OLD = "sessions: {too_old: 1s}\n"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        slow = {"user": "slow", "answers": [{"chunks": ["slow", " answer"], "delay": "150ms"}]}
        gateway.script(slow, {"user": "quick", "answers": [{"text": "quick answer"}]})
        gateway.start()
        yield gateway


def said(gateway: GatewayProcess, text: str, name: str) -> object:
    return gateway.call("chat.say", {"text": text, "session": "main", "id": name})["reply"]


def asked(gateway: GatewayProcess) -> list[str]:
    entries = gateway.call("sessions.show", {"session": KEY})["entries"]
    return [entry["content"] for entry in entries if entry["role"] == "user"]


def has_begun(gateway: GatewayProcess) -> bool:
    """The very first turn is running; where this machine stood still, it may be over."""
    return bool(gateway.call("status")["turns"]["running"] or gateway.call("sessions.list")["sessions"])


def test_a_thing_said_again_under_its_id_is_one_message_and_has_one_answer(gateway: GatewayProcess) -> None:
    """While it is answered, afterwards, and after a crash."""
    with ControlClient(gateway.home.socket) as lost:
        lost.start("chat.say", {"text": "slow", "session": "main", "id": "a"})
        gateway.until(lambda: has_begun(gateway))
    assert said(gateway, "slow", "a") == "slow answer"
    assert said(gateway, "quick", "b") == "quick answer"
    gateway.kill()
    gateway.start()
    assert said(gateway, "slow", "a") == "slow answer"
    assert said(gateway, "quick", "b") == "quick answer"
    assert asked(gateway) == ["slow", "quick"]


def test_without_an_id_each_is_a_message_of_its_own(gateway: GatewayProcess) -> None:
    gateway.say("quick")
    gateway.say("quick")
    assert asked(gateway) == ["quick", "quick"]


def test_what_waited_too_long_while_nobody_ran_is_not_answered_but_told_so(gateway: GatewayProcess) -> None:
    """The message that was being answered is answered; the one behind it is too old by then."""
    gateway.stop()
    gateway.script({"user": "slow", "answers": [{"text": "never", "delay": 300}]}, settings=TOO_OLD)
    gateway.start()
    with ControlClient(gateway.home.socket) as line:
        line.start("chat.say", {"text": "slow", "session": "main", "id": "a"})
        gateway.until(lambda: gateway.call("status")["turns"]["running"] == 1)
        line.start("chat.say", {"text": "/title late", "session": "main", "id": "b"})
        gateway.until(lambda: gateway.say("/queue")["reply"].startswith("Waiting in this session: 1 message;"))
        gateway.kill()
    killed = time.monotonic()
    gateway.until(lambda: time.monotonic() - killed > 1.1)
    gateway.script({"user": "slow", "answers": [{"text": "slow answer"}]}, settings=TOO_OLD)
    gateway.start()
    assert said(gateway, "slow", "a") == "slow answer"
    assert "a long time ago" in str(said(gateway, "/title late", "b"))
