"""Two gateways work on the journal that a real NATS server keeps, and each goes on with what the other one leaves."""

import json
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.cluster.journal import find_last_name, keep_name
from gateway.cluster.nats.engine import open_nats
from gateway.cluster.nats.stored_consumers import read_consumer
from gateway.cluster.nats.streams import NANOSECONDS
from gateway.daemon.journal import find_node_name
from gateway.engine.interface import NewRecord
from gateway.errors import GatewayError
from gateway.testing import GatewayProcess
from tests.engine.nats_requests import count_requests, count_trips
from tests.engine.nats_servers import NatsServer, run_servers
from tests.spine import until
from tests.waits import Stopwatch

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

TAKE_OVER, SLOW_SECONDS = 12.0, 3.0
STILL_SECONDS = 10.0  # that this machine may stand still
TURNS, MOST_TRIPS = 15, 5
AT_ONCE = 8  # messages
NOTHING = "def handle(event_type, context): pass\n"
SLOW = {"user": "slow", "answers": [{"chunks": [f"word{number} " for number in range(20)], "delay": "150ms"}]}
SCRIPT: tuple[dict[str, Any], ...] = (*[SLOW] * 4, *({"user": "", "text": "I heard you."},) * 40)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with run_servers(tmp_path / "nats", 1) as servers:
        yield servers[0]


@pytest.fixture
def two(tmp_path: Path, server: NatsServer) -> Iterator[tuple[GatewayProcess, GatewayProcess]]:
    with GatewayProcess(tmp_path / "a" / "home") as one, GatewayProcess(tmp_path / "b" / "home") as other:
        other.environ |= {"TELEGRAM_BOT_TOKEN": "1:x", "TELEGRAM_HOME_CHANNEL": "7"}  # which it does not serve
        for node, gateway in (("{name: one}", one), ("{name: other, roles: [lanes, hooks, web]}", other)):
            gateway.script(*SCRIPT, settings=f"engine: {server.url}\nnode: {node}\n")
            gateway.process = gateway.spawn("run")
        for gateway in (one, other):
            gateway.until(gateway._is_ready, 60)
        yield one, other


def list_said(gateway: GatewayProcess) -> list[tuple[str, str]]:
    found = list[tuple[str, str]]()
    for session in gateway.call("sessions.list")["sessions"][:1]:
        entries = gateway.call("sessions.show", {"session": session["session_id"]})["entries"]
        found = [(one["role"], one["content"]) for one in entries]
    return found


@contextmanager
def slow_turn(two: tuple[GatewayProcess, GatewayProcess]) -> Iterator[tuple[GatewayProcess, GatewayProcess]]:
    """Yields the one that runs it, and the other one; whoever asked for it may get no answer.

    Where this machine stood still, it may be over: then either of them is the one.
    """
    asked = threading.Thread(target=lambda: ask_in_vain(two[0], "slow"))
    asked.start()
    found = list[GatewayProcess]()

    def is_found() -> bool:
        found.extend(one for one in two if one.call("status")["turns"]["running"] or is_slow_answered(one))
        return bool(found)

    two[0].until(is_found)
    yield found[0], two[1] if found[0] is two[0] else two[0]
    asked.join()


def ask_in_vain(gateway: GatewayProcess, text: str) -> None:
    with suppress(GatewayError, OSError):
        gateway.say(text)


def is_slow_answered(gateway: GatewayProcess) -> bool:
    return any("word19" in text for _role, text in list_said(gateway))


def wait_for_slow_answer(gateway: GatewayProcess) -> float:
    """How long that took."""
    with Stopwatch() as watch:
        gateway.until(lambda: is_slow_answered(gateway))
    return watch.seconds


def list_nodes(gateway: GatewayProcess) -> set[str]:
    """List the nodes that it has heard of; just after a start some may be missing."""
    return {node["name"] for node in gateway.call("status")["nodes"]}


def check_each_is_answered_once(gateway: GatewayProcess, *said: str) -> None:
    gateway.until(lambda: len(list_said(gateway)) >= 2 * len(said))  # another may have written them just now
    entries = list_said(gateway)
    assert [text for role, text in entries if role == "user"] == [*said]
    assert len([text for role, text in entries if role == "assistant"]) == len(said)


async def read_waits(url: str) -> dict[str, float]:
    """After how many seconds that a gateway had in hands which is no more comes to others, by the consumer."""
    async with await open_nats(url) as engine:
        found = [await read_consumer(engine._connection, engine._reader, name) for name in await engine.consumers()]
    return {one["name"]: one["config"]["ack_wait"] / NANOSECONDS for one in found if one}


def test_all_work_at_a_time_and_what_is_known_on_one_is_known_on_all(
    two: tuple[GatewayProcess, GatewayProcess], server: NatsServer
) -> None:
    one, other = two
    one.add_hook("keeps", {"HOOK.yaml": "events: [agent:end]\ndelivery: durable\n", "handler.py": NOTHING})
    assert one.say("good morning")["reply"] == other.say("and to you")["reply"] == "I heard you."
    check_each_is_answered_once(other, "good morning", "and to you")
    for gateway, beside in ((one, "other"), (other, "one")):
        gateway.until(lambda: list_nodes(gateway) == {"one", "other"})  # noqa: B023 - it is waited for at once
        said = f"the configuration of {beside} is another one than here"
        gateway.until(lambda: said in gateway.cli("doctor").stdout)  # noqa: B023 - it is waited for at once
    one.until(lambda: "hook-keeps" in anyio.run(read_waits, server.url))
    waits = anyio.run(read_waits, server.url)
    assert {name: wait for name, wait in waits.items() if wait > TAKE_OVER - 1} == {}, waits


def test_a_turn_of_one_that_is_killed_is_ended_by_the_other(two: tuple[GatewayProcess, GatewayProcess]) -> None:
    with slow_turn(two) as (runner, survivor):
        time.sleep(1.0)  # the answer is being written
        runner.kill()
        assert wait_for_slow_answer(survivor) < TAKE_OVER + SLOW_SECONDS + STILL_SECONDS
    runner.start()
    assert runner.say("are you there?")["reply"] == "I heard you."
    check_each_is_answered_once(survivor, "slow", "are you there?")


def test_one_that_ends_leaves_nothing_undone(two: tuple[GatewayProcess, GatewayProcess]) -> None:
    with slow_turn(two) as (runner, survivor):
        assert runner.stop()[0] == 0
        wait_for_slow_answer(survivor)
    assert survivor.say("hello")["reply"] == "I heard you."
    check_each_is_answered_once(survivor, "slow", "hello")


def test_one_that_stands_still_loses_its_turn_and_works_again_when_it_wakes(
    two: tuple[GatewayProcess, GatewayProcess],
) -> None:
    with slow_turn(two) as (runner, survivor):
        assert runner.process
        runner.process.send_signal(signal.SIGSTOP)
        assert wait_for_slow_answer(survivor) < TAKE_OVER + SLOW_SECONDS + STILL_SECONDS
        assert survivor.say("hello")["reply"] == "I heard you."
        runner.process.send_signal(signal.SIGCONT)
    assert runner.say("still here?")["reply"] == "I heard you."
    check_each_is_answered_once(survivor, "slow", "hello", "still here?")


def test_servers_that_were_away_are_waited_for(two: tuple[GatewayProcess, GatewayProcess], server: NatsServer) -> None:
    one, other = two
    assert one.say("before")["reply"] == "I heard you."
    logs = {gateway: gateway.home.log.read_text() for gateway in two}
    server.kill()
    time.sleep(12)  # longer than the lease
    server.start()
    for gateway in two:
        gateway.until(lambda: gateway.call("status")["journal"]["ok"], 60)  # noqa: B023 - it is waited for at once
    assert one.say("after")["reply"] == other.say("and after that")["reply"] == "I heard you."
    for gateway, before in logs.items():
        lines = gateway.home.log.read_text().removeprefix(before).splitlines()
        said = [re.sub(r"\d+", "", json.loads(line)["message"]) for line in lines]
        assert sorted(said) == sorted(set(said)), "each thing is said once"
        for word in ("see that it runs", "is back after"):
            assert [word in one for one in said].count(True) == 1, said
    assert any("chat  of telegram is not told" in line for line in said)


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
        await until(lambda: counts["append"] >= 4 * TURNS)  # message, claim and end, and the one beside
    assert count_trips(counts) <= (MOST_TRIPS + 1) * TURNS, counts


def test_a_home_has_a_name_of_its_own_and_a_copy_another(tmp_path: Path) -> None:
    kept = tmp_path / "node.json"
    name = find_node_name(kept, tmp_path)
    assert find_node_name(kept, tmp_path) == name
    keep_name(kept, tmp_path, "nats://one", "first")
    assert find_last_name(kept, tmp_path, "nats://one") == "first"
    assert find_node_name(kept, tmp_path) == name
    assert not find_last_name(kept, tmp_path, "nats://other"), "there another may have that name"
    assert not find_last_name(kept, tmp_path / "copy", "nats://one")
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


def make_say(number: int, session: str) -> bytes:
    params = {"text": f"number {number}", "session": session, "id": f"{session}-{number}"}
    return json.dumps({"id": number, "method": "chat.say", "params": params}).encode() + b"\n"


def say_at_once(gateway: GatewayProcess, session: str) -> None:
    """Write all of it to one connection, and wait until each is answered."""
    with socket.socket(socket.AF_UNIX) as line, line.makefile("rb") as answers:
        line.connect(str(gateway.home.socket))
        line.sendall(b"".join(make_say(number, session) for number in range(AT_ONCE)))
        waiting = set(range(AT_ONCE))
        while waiting:
            told = json.loads(answers.readline())
            assert "error" not in told
            waiting.discard(told.get("id", -1) if "result" in told else -1)


def test_what_is_said_at_once_over_one_line_into_a_new_session_stays_in_order(
    tmp_path: Path, server: NatsServer
) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "", "text": "I heard you."}, settings=f"engine: {server.url}\n")
        gateway.process = gateway.spawn("run")
        gateway.until(gateway._is_ready, 60)
        heard = {}
        for session in ("first", "second", "third", "fourth"):
            say_at_once(gateway, session)
            entries = gateway.call("sessions.show", {"session": f"agent:main:terminal:dm:{session}"})["entries"]
            text = " ".join(one["content"] for one in entries if one["role"] == "user")
            heard[session] = [int(number) for number in re.findall(r"number (\d+)", text)]
    assert heard == {session: [*range(AT_ONCE)] for session in heard}
