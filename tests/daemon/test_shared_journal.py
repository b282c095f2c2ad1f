"""Two gateways on the journal that a real NATS server keeps: one works, the other stands by and takes it all over."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.daemon.journal import find_node_name
from gateway.engine import NewRecord
from gateway.engine.nats.engine import open_nats
from gateway.errors import ExitCode, GatewayError
from gateway.testing import GatewayProcess
from tests.engine.nats_requests import count_requests, count_trips
from tests.engine.nats_servers import NatsServer, run_servers

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

TAKE_OVER = 12.0
TURNS, MOST_TRIPS = 15, 8
SLOW = {"user": "slow", "answers": [{"chunks": [f"word{number} " for number in range(20)], "delay": "150ms"}]}
SCRIPT: tuple[dict[str, Any], ...] = (*[SLOW] * 4, *({"user": "", "text": "I heard you."},) * 40)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with run_servers(tmp_path / "nats", 1) as servers:
        yield servers[0]


@pytest.fixture
def two(tmp_path: Path, server: NatsServer) -> Iterator[tuple[GatewayProcess, GatewayProcess]]:
    with GatewayProcess(tmp_path / "a" / "home") as one, GatewayProcess(tmp_path / "b" / "home") as other:
        for name, gateway in (("one", one), ("other", other)):
            gateway.script(*SCRIPT, settings=f"engine: {server.url}\nnode: {{name: {name}}}\n")
        one.start()
        yield one, other


def stand_by(gateway: GatewayProcess) -> None:
    gateway.process = gateway.spawn("run")
    log = gateway.home.log
    gateway.until(lambda: log.exists() and "stands by" in log.read_text(), 60)


def wait_for(gateway: GatewayProcess) -> float:
    """Until it works; how long that took."""
    begun = time.monotonic()
    gateway.until(gateway._is_ready, 60)
    return time.monotonic() - begun


def list_said(gateway: GatewayProcess) -> list[tuple[str, str]]:
    session = gateway.call("sessions.list")["sessions"][0]["session_id"]
    return [(one["role"], one["content"]) for one in gateway.call("sessions.show", {"session": session})["entries"]]


def test_one_that_is_killed_is_followed_by_the_other(two: tuple[GatewayProcess, GatewayProcess]) -> None:
    one, other = two
    stand_by(other)
    assert "stands by: one works on the journal" in other.cli("status").stdout
    assert "process: fine" in other.cli("doctor").stdout
    assert one.say("good morning")["reply"] == "I heard you."
    asked = threading.Thread(target=lambda: ask_in_vain(one, "slow"))
    asked.start()
    time.sleep(1.0)  # the answer is being written
    one.kill()
    asked.join()
    assert wait_for(other) < TAKE_OVER
    other.until(lambda: any("word19" in text for _role, text in list_said(other)), 15)
    said = [text for role, text in list_said(other) if role == "user"]
    assert said == ["good morning", "slow"]
    stand_by(one)
    assert other.say("are you there?")["reply"] == "I heard you."


def ask_in_vain(gateway: GatewayProcess, text: str) -> None:
    with suppress(GatewayError, OSError):
        gateway.say(text)


def test_one_that_ends_hands_over_at_once(two: tuple[GatewayProcess, GatewayProcess]) -> None:
    one, other = two
    stand_by(other)
    assert one.stop()[0] == 0
    assert wait_for(other) < 6
    assert other.say("hello")["reply"] == "I heard you."


def test_one_that_was_held_up_ends_and_writes_nothing(two: tuple[GatewayProcess, GatewayProcess]) -> None:
    one, other = two
    stand_by(other)
    assert one.process
    one.process.send_signal(signal.SIGSTOP)
    assert wait_for(other) < TAKE_OVER
    assert other.say("hello")["reply"] == "I heard you."
    one.process.send_signal(signal.SIGCONT)
    assert one.process.wait(timeout=30) == ExitCode.RESTART
    assert other.say("still here?")["reply"] == "I heard you."
    assert len(list_said(other)) == 4


def test_servers_that_were_away_are_waited_for(two: tuple[GatewayProcess, GatewayProcess], server: NatsServer) -> None:
    one, _other = two
    assert one.say("before")["reply"] == "I heard you."
    server.kill()
    time.sleep(12)  # longer than the lease
    server.start()
    one.until(lambda: one.call("status")["journal"]["ok"], 60)
    assert one.say("after")["reply"] == "I heard you."


async def test_a_turn_waits_few_times_for_the_servers(
    two: tuple[GatewayProcess, GatewayProcess], server: NatsServer
) -> None:
    """What is not asked for a single turn, but now and then, counts too; that another one writes costs nothing."""
    one, _other = two
    for number in range(3):
        one.say(f"hello {number}")
    await anyio.sleep(1)  # for what follows of these
    async with await open_nats(server.url) as beside, count_requests(server.url) as counts:
        for number in range(TURNS):
            await beside.append(NewRecord("gw.beside", b""))
            await anyio.to_thread.run_sync(one.say, f"hello again {number}")
        await anyio.sleep(1)
    assert counts["append"] >= 5 * TURNS
    assert count_trips(counts) <= (MOST_TRIPS + 1) * TURNS, counts


def test_a_home_has_a_name_of_its_own_and_a_copy_another(tmp_path: Path) -> None:
    kept = tmp_path / "node.json"
    name = find_node_name(kept, tmp_path)
    assert find_node_name(kept, tmp_path) == name
    assert find_node_name(kept, tmp_path / "copy") != name


def test_doctor_says_whether_the_servers_are_there(
    two: tuple[GatewayProcess, GatewayProcess], server: NatsServer
) -> None:
    _one, other = two
    assert "journal: fine" in other.cli("doctor").stdout
    other.home.journal.write_bytes(b"")
    assert "is not taken along" in " ".join(other.cli("doctor").stdout.split())
    server.kill()
    said = other.cli("doctor")
    assert said.returncode == 1
    assert "no NATS server answers" in " ".join(said.stdout.split())
