"""The terminal as a network: a program that lost its line says a thing again, and it is one message."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway import record_subjects, records
from gateway.adapters.terminal import TerminalWatcher
from gateway.control_socket.client import ControlClient
from gateway.engine import NewRecord, Record
from gateway.messages import Address, Message, Receipt, Reply
from gateway.testing import GatewayProcess
from gateway.testing.memory_engine import MemoryEngine

pytestmark = pytest.mark.process

KEY = "agent:main:terminal:dm:main"
REPLIES = record_subjects.reply_subject_of(Address("terminal", "main"), KEY)


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


def test_a_thing_said_again_under_its_id_is_one_message_and_has_one_answer(gateway: GatewayProcess) -> None:
    """While it is answered, afterwards, and after a crash."""
    with ControlClient(gateway.home.socket) as lost:
        lost.start("chat.say", {"text": "slow", "session": "main", "id": "a"})
        gateway.until(lambda: gateway.call("status")["turns"]["running"] == 1)
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
    script = {"user": "slow", "answers": [{"chunks": ["slow", " answer"], "delay": "400ms"}]}
    gateway.script(script, settings="sessions: {too_old: 1s}\n")
    gateway.start()
    with ControlClient(gateway.home.socket) as line:
        line.start("chat.say", {"text": "slow", "session": "main", "id": "a"})
        gateway.until(lambda: gateway.call("status")["turns"]["running"] == 1)
        line.start("chat.say", {"text": "/title late", "session": "main", "id": "b"})
        gateway.until(lambda: gateway.say("/queue")["reply"].startswith("Waiting in this session: 1 message;"))
        gateway.kill()
    killed = time.monotonic()
    gateway.until(lambda: time.monotonic() - killed > 1.1)
    gateway.start()
    assert said(gateway, "slow", "a") == "slow answer"
    assert "long ago" in str(said(gateway, "/title late", "b"))


class HalfHeard(MemoryEngine):
    """Of the newest append, what is read without asking the servers has the first record alone."""

    async def read(self, pattern: str, after: int = 0, limit: int = 100, *, fresh: bool = True) -> list[Record]:
        found = await super().read(pattern, after, limit, fresh=fresh)
        return found if fresh else [record for record in found if record.subject != REPLIES]


async def test_a_reply_of_which_only_the_end_of_its_turn_was_heard_is_shown() -> None:
    engine, shown = HalfHeard(), list[Any]()
    heard = await engine.tail("gw.turn.*")
    end = records.TurnEnded(upto=1, turn_id="t", status="ok")
    reply = records.OwedReply(reply=Reply("t:reply", Address("terminal", "main"), "here"), session_key=KEY, turn_id="t")
    await engine.append(NewRecord("gw.in.x", b"{}"))
    await engine.append(NewRecord("gw.turn.x", records.encode(end)), NewRecord(REPLIES, records.encode(reply)))

    async def notify(*told: Any) -> None:
        shown.append(told)

    asked = Message("m", Address("terminal", "main"), "owner", "hello", session="main")
    watcher = TerminalWatcher(engine, Receipt(KEY, 1), asked, notify, lambda _reply: None)
    with anyio.fail_after(10):
        said = await watcher.until_done(heard)
    assert said.reply == "here"
    await engine.close()
