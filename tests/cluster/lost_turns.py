"""Turns whose node is killed, or hangs, between two runs of a tool: another node goes on with them."""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from gateway.cluster.nats.engine import open_nats
from gateway.lanes.context import LaneSettings
from tests.audit import audit
from tests.engine.nats_servers import run_servers
from tests.lanes.node import LEASE
from tests.lanes.test_nodes import Nodes
from tests.proof_table import Row, Trial, make_row
from tests.spine import lane_settings, until

SERVERS = 3
SHIPPED: LaneSettings = lane_settings()
LONGEST = 120.0
BUSY_SECONDS = 60  # more in a short run, whose parts run beside each other


@dataclass
class LostTurns:
    """`taken_over`: the seconds until another node went on, after each kill."""

    taken_over: list[float] = field(default_factory=list)
    pauses: int = 0
    refused: int = 0  # steps of nodes that woke up
    payments: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


async def try_turns(trial: Trial, folder: Path, lease: float) -> LostTurns:
    found = LostTurns()
    with run_servers(folder / "nats", SERVERS) as servers:
        url = ",".join(one.url for one in servers)
        async with await open_nats(url) as engine:
            nodes = Nodes(url, engine, folder / "told", lease)
            try:
                await nodes.start("a", "b")
                for number in range(trial.amount(3, 1)):
                    trial.tell(f"turns: {number + 1}")
                    found.taken_over.append(await kill_in_the_middle(nodes, number))
                    await stand_still_in_the_middle(nodes, number)
                    found.pauses += 1
            finally:
                nodes.end()
            found.refused = len(nodes.list_told("is-refused"))
            found.payments = Counter((what, text) for _, what, _, text in nodes.list_told() if what.startswith("pays"))
            found.faults = (await audit(engine)).faults
    return found


async def kill_in_the_middle(nodes: Nodes, number: int) -> float:
    """How long it took until the other one went on with the turn."""
    text = f"slow killed {number}"
    seq, lost = await begin(nodes, text)
    nodes.send(lost, signal.SIGKILL)
    since = time.monotonic()
    await until(lambda: len(nodes.list_told("begins", text)) == 2, f"who goes on with {text}", LONGEST)
    taken = time.monotonic() - since
    await nodes.wait_for_answer(seq, chat_of(text), LONGEST)
    nodes.processes[lost].wait()
    del nodes.processes[lost]
    await nodes.start(f"{lost[0]}{number}")
    return taken


async def stand_still_in_the_middle(nodes: Nodes, number: int) -> None:
    text = f"slow paused {number}"
    seq, lost = await begin(nodes, text)
    refused = len(nodes.list_told("is-refused"))
    nodes.send(lost, signal.SIGSTOP)
    await nodes.wait_for_answer(seq, chat_of(text), LONGEST)
    nodes.send(lost, signal.SIGCONT)
    await until(lambda: len(nodes.list_told("is-refused")) > refused, f"{lost} being refused", LONGEST)


async def begin(nodes: Nodes, text: str) -> tuple[int, str]:
    """The message, and the node that has run its tool once."""
    seq = await nodes.say(text, chat_of(text))
    runner = await nodes.find_runner(text)
    await until(lambda: nodes.list_told("pays-0", text), f"the tool of {text}", LONGEST)
    return seq, runner


def chat_of(text: str) -> str:
    return text.replace(" ", "")


def prove(trial: Trial) -> Iterator[Row]:
    folder = trial.folder / "turns"
    folder.mkdir()
    lease = LEASE if trial.is_short else SHIPPED.lease
    found = anyio.run(try_turns, trial, folder, lease)
    longest, most = max(found.taken_over), lease + 2 + trial.amount(0, BUSY_SECONDS)
    yield make_row("a turn goes on elsewhere, after kill -9", f"<= {most:g} s", f"{longest:.1f} s", longest <= most)
    is_refused = found.refused >= found.pauses
    came = f"{found.refused} of {found.pauses}"
    yield make_row("nodes that woke up and whose write was refused", "all", came, is_refused)
    twice = [text for (_, text), count in found.payments.items() if count > 1]
    yield make_row("tools of these that ran twice", "0", str(len(twice)), not twice)
    yield make_row("what else broke in these turns", "0", str(len(found.faults)), not found.faults)
