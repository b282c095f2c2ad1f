"""Several nodes on the journal of real NATS servers: processes that are killed, and that hang."""

import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import pytest

from gateway.cluster.nats.engine import NatsEngine, open_nats
from gateway.lanes.edits import read_inbound
from gateway.lanes.lanes import Lanes, make_inbound_put
from gateway.sessions.repository import SessionRepository
from tests.audit import audit
from tests.engine.nats_servers import run_servers
from tests.lanes.desk import Watched
from tests.lanes.node import LEASE, LONG_SECONDS, SETTINGS, SLOW_SECONDS
from tests.spine import key, message, replies, until
from tests.waits import Stopwatch

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

ROOT = Path(__file__).parents[2]
CHATS = "abcdef"


STEADY = 16.0  # a lease that is not over when this machine has stood still


class Nodes:
    """The processes, and the test beside them, who writes into the journal and reads it."""

    def __init__(self, url: str, engine: NatsEngine, told: Path, lease: float = LEASE) -> None:
        self.url, self.engine, self.told, self.lease = url, engine, told, lease
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.sessions = SessionRepository(engine)
        self.lanes = Lanes(engine, self.sessions, Watched(), SETTINGS, node="beside")  # they never run

    async def start(self, *names: str) -> None:
        before = {name: len(self.list_told(name, "serves")) for name in names}
        for name in names:
            command = [sys.executable, "-m", "tests.lanes.node", self.url, name, str(self.told), str(self.lease)]
            self.processes[name] = subprocess.Popen(command, cwd=ROOT)  # noqa: ASYNC220 - it goes on beside us
        for name in names:
            await until(partial(self.has_begun, name, before[name] + 1), f"node {name}", 60)

    def has_begun(self, name: str, times: int) -> bool:
        return len(self.list_told(name, "serves")) == times

    def list_told(self, *words: str) -> list[list[str]]:
        """List the lines with these words: node, what, message, text."""
        lines = [line.split(" ", 3) for line in self.told.read_text().splitlines()] if self.told.exists() else []
        return [line for line in lines if all(word in line for word in words)]

    async def say(self, text: str, chat: str, **more: str) -> int:
        put = make_inbound_put(message(text, chat, **more), key(chat), "", time.time())
        return (await self.engine.append(put))[0]

    async def wait_for_answer(self, seq: int, chat: str, seconds: float = 60.0) -> float:
        """How long it took."""

        async def is_answered() -> bool:
            return (await self.sessions.open(key(chat))).upto >= seq

        with Stopwatch() as watch:
            await until(is_answered, f"the answer to {seq} in {chat}", seconds)
        return watch.seconds

    async def find_runner(self, text: str) -> str:
        """The node that runs the turn of this message."""
        await until(lambda: self.list_told(text), f"the turn of {text}")
        return self.list_told(text)[-1][0]

    def send(self, name: str, number: signal.Signals) -> None:
        self.processes[name].send_signal(number)

    def end(self) -> None:
        for process in self.processes.values():
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with run_servers(tmp_path_factory.mktemp("nats"), 1) as (one,):
        yield one.url


@pytest.fixture
async def nodes(server: str, tmp_path: Path) -> AsyncIterator[Nodes]:
    url = f"{server}/t{uuid.uuid4().hex[:12]}"
    async with await open_nats(url) as engine:
        nodes = Nodes(url, engine, tmp_path / "told")
        try:
            yield nodes
        finally:
            nodes.end()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_messages_of_many_are_answered_once_and_in_order_though_a_node_is_lost(
    nodes: Nodes, number: signal.Signals
) -> None:
    """One is lost in the middle of turns, wakes up later if it can, and writes nothing more of those."""
    await nodes.start("a", "b", "c")
    last = {}
    for place in range(6):
        for chat in CHATS:
            last[chat] = await nodes.say(f"slow {chat}{place}" if place == 1 else f"{chat}{place}", chat)
        await anyio.sleep(0.05)
    lost = await nodes.find_runner("slow a1")
    await until(lambda: nodes.list_told("pays-0", "slow a1"))
    nodes.send(lost, number)
    if number == signal.SIGSTOP:
        await anyio.sleep(2 * LEASE)
        nodes.send(lost, signal.SIGCONT)
    for chat, seq in last.items():
        await nodes.wait_for_answer(seq, chat)
    for chat in CHATS:
        texts = [f"slow {chat}{place}" if place == 1 else f"{chat}{place}" for place in range(6)]
        assert await replies(nodes.engine, chat) == [f"re {text}" for text in texts]
    await anyio.sleep(LEASE if number == signal.SIGSTOP else 0)  # what wakes up has its chance
    assert (await audit(nodes.engine)).faults == []
    paid = Counter((what, text) for _node, what, _id, text in nodes.list_told() if what.startswith("pays"))
    assert set(paid.values()) == {1}  # no tool runs twice, whoever goes on with the turn
    spread = Counter(node for node, what, _id, _text in nodes.list_told("begins"))
    assert len(spread) == 3, spread


async def test_the_turn_and_the_doorbell_of_one_that_dies_are_taken_over_within_the_lease_and_two_seconds(
    nodes: Nodes,
) -> None:
    await nodes.start("a", "b")
    for chat in "abc":  # in one of the rounds at least this machine does not stand still
        seq = await nodes.say(f"slow {chat}", chat)
        first = await nodes.find_runner(f"slow {chat}")
        waiting = await nodes.say("next", chat)  # its doorbell is in the hands of either
        nodes.send(first, signal.SIGKILL)
        turn, doorbell = await nodes.wait_for_answer(seq, chat), await nodes.wait_for_answer(waiting, chat)
        if turn < LEASE + 2 + SLOW_SECONDS and doorbell < 1:
            break
        nodes.processes[first].wait()
        await nodes.start(first)
    else:
        pytest.fail(f"the turn took {turn:.1f} s, and the doorbell {doorbell:.1f} s more")
    assert (await audit(nodes.engine)).faults == []


async def test_one_that_starts_anew_goes_on_with_its_own_turns_and_leaves_others_theirs(nodes: Nodes) -> None:
    nodes.lease = STEADY
    await nodes.start("a", "b")
    chats = "abcdefgh"
    said = {chat: await nodes.say(f"slow {chat}", chat) for chat in chats}
    await until(lambda: len(nodes.list_told("begins")) == len(chats))
    theirs = {line[3] for line in nodes.list_told("begins", "b")}
    nodes.send("a", signal.SIGKILL)
    nodes.processes["a"].wait()
    await nodes.start("a")
    for chat, seq in said.items():
        await nodes.wait_for_answer(seq, chat)
    begun = Counter(line[3] for line in nodes.list_told("begins"))
    assert {text for text, count in begun.items() if count == 1} >= theirs
    assert (await audit(nodes.engine)).faults == []


async def test_whoever_says_stop_beside_another_node_stops_the_turn(nodes: Nodes) -> None:
    await nodes.start("a", "b")
    seq = await nodes.say("long one", "a")
    await nodes.find_runner("long one")
    assert await nodes.lanes.interrupt(key("a")) == "running"
    assert await nodes.wait_for_answer(seq, "a") < LONG_SECONDS / 2
    assert await nodes.lanes.interrupt(key("a")) == "nothing"
    seq = await nodes.say("long two", "a")
    runner = await nodes.find_runner("long two")
    nodes.send(runner, signal.SIGSTOP)  # its turn is ended, or stopped elsewhere, when its lease is over
    assert await nodes.lanes.interrupt(key("a")) in ("waiting", "running")
    nodes.send(runner, signal.SIGCONT)
    assert await nodes.wait_for_answer(seq, "a") < LONG_SECONDS / 2
    await anyio.sleep(1)
    assert await replies(nodes.engine, "a") == []
    assert len(nodes.list_told("pays-2")) == 0


@pytest.mark.parametrize("kind", ["text", "edit"])
async def test_a_message_that_interrupts_reaches_the_turn_on_whichever_node_it_rings(nodes: Nodes, kind: str) -> None:
    """Doorbells go to the nodes in turns, so of several some ring beside the turn."""
    await nodes.start("a", "b")
    for place in range(3):
        chat = f"{kind}{place}"
        seq = await nodes.say(f"long {chat}", chat, id=f"m{place}")
        await nodes.find_runner(f"long {chat}")
        more = {"kind": "edit", "id": f"m{place}:edit:1"} if kind == "edit" else {}
        last = await nodes.say(f"no! {chat}", chat, **more)
        assert await nodes.wait_for_answer(max(seq, last), chat) < LONG_SECONDS / 2
        assert len(nodes.list_told("pays-2", f"long {chat}")) == 0
        assert len(await read_inbound(nodes.engine, key(chat), 0)) == 2
        if place == 1:  # an odd one, however many doorbells there were: of three rounds one is the other's
            await nodes.wait_for_answer(await nodes.say("between", "else"), "else")
    assert {line[0] for line in nodes.list_told("begins") if line[3].startswith("long")} == {"a", "b"}
