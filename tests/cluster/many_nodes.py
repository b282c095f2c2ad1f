"""Many nodes, each with a connection of its own and without a model, that come and go while people write.

Ten of them are one process. When all of them are there, what they ask of the servers is counted, first while nothing
happens and then while people write; then processes are killed, told to leave and made to stand still, and others come
in their place, while people write on.
"""

import itertools
import json
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from gateway.cluster.nats.engine import NatsEngine, open_nats
from gateway.cluster.nodes import LEASE_SECONDS, RENEWALS
from gateway.engine.interface import NewRecord
from gateway.lanes.lanes import CONSUMER, make_inbound_put
from tests.audit import Audit, audit
from tests.cluster.node_group import PARTS
from tests.engine.nats_requests import count_requests, find_any_kind
from tests.engine.nats_servers import NatsServer, run_servers
from tests.proof_table import ROOT, Row, Trial, make_row
from tests.siege.people import until
from tests.spine import key, message
from tests.waits import fail_after

SERVERS = 3
CHATS = 1000
WRITERS, RATE = 8, 20.0  # messages a second
# Messages for each node, in one moment; of fewer than nodes some have none. On a busy machine a node may just then ask
# anew for work, and have none either: that is a tenth of its share.
ROUNDS, EACH_AT_ONCE = 10, 3
STILL = 15.0  # longer than any lease
LONGEST = 300.0
GLANCE = 0.2
CALM = 6.0  # a bot that is given away is somebody's within five, and then the next one may be
OF_CHANGES = ("read from the leader", "other call")  # who has a lease, and that it is given back
SPREAD = 0.2
# Each node says twice in four seconds that it is there, renews its lease every three, and asks for work every five: one
# request a second. A message is one append, its turn two, with two acknowledgements, and the chain is looked for once.
IDLE, FOR_A_MESSAGE = 2, 15
SHARED = len(PARTS) * RENEWALS / LEASE_SECONDS  # a second, of all nodes together: what one at a time does is renewed
MOST_WATCHERS = 12


@dataclass
class Group:
    """A process with nodes in it. `is_lost`: it left in the middle of its work, which others repeated."""

    process: subprocess.Popen[bytes]
    nodes: list[str]
    is_lost: bool = False


@dataclass
class Counted:
    """The requests of all nodes and writers to the servers."""

    seconds: float
    requests: Counter[str]
    messages: int
    most: int = 0  # in one second
    most_of: Counter[str] = field(default_factory=Counter)  # what it was

    @property
    def rate(self) -> float:
        return self.requests.total() / self.seconds

    def note(self, requests: Counter[str], seconds: float) -> None:
        """Note the requests within about a second."""
        if (rate := round(requests.total() / seconds)) > self.most:
            self.most, self.most_of = rate, requests


@dataclass
class Findings:
    """The results."""

    nodes: int
    said: int
    audited: Audit
    begun_twice: list[str]
    shares: list[int]  # turns of each node, while all of them were there
    consumers: int
    watchers: tuple[float, float]  # subscriptions of a node, before others came and went and after it
    idle: Counted
    busy: Counted
    changing: Counted
    deeds: Counter[str]


class ManyNodes:
    """The nodes, and who writes to them."""

    def __init__(self, servers: Sequence[NatsServer], engine: NatsEngine, folder: Path, each: int) -> None:
        self.engine, self.groups = engine, list[Group]()
        self.said, self.consumers, self.deeds = list[str](), 0, Counter[str]()
        self._servers, self._told, self._each = servers, folder / "told", each
        self._told.touch()
        self._names = itertools.count()
        self._chance = random.Random(1)

    async def add(self, count: int) -> None:
        """So many processes more, until all of their nodes serve."""
        url, added = ",".join(one.url for one in self._servers), [f"g{next(self._names)}" for _ in range(count)]
        for name in added:
            command = [sys.executable, "-m", "tests.cluster.node_group", url, name, str(self._each), str(self._told)]
            with (self._told.parent / f"{name}.log").open("wb") as log:
                process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)  # noqa: ASYNC220 - it goes on
            self.groups.append(Group(process, [f"{name}-{number}" for number in range(self._each)]))
        wanted = {node for group in self.groups[-count:] for node in group.nodes}
        async with fail_after(LONGEST):
            await until(lambda: wanted <= {node for node, what in self.list_told() if what == "serves"})

    def list_told(self) -> list[tuple[str, str]]:
        """The nodes and what they did, a line for each."""
        return [(node, what) for node, what in (line.split() for line in self._told.read_text().splitlines())]

    async def write(self, count: int) -> None:
        """So many messages, and wait until nothing is left to be done."""
        texts = iter([f"m{len(self.said) + number}" for number in range(count)])
        async with anyio.create_task_group() as tasks:
            for _ in range(WRITERS):
                tasks.start_soon(self._write_some, texts)
        await self.settle()

    async def write_at_once(self, count: int) -> None:
        """So many messages in one moment, each in a chat of its own: all nodes have something to do."""
        texts = [f"m{len(self.said) + number}" for number in range(count)]
        await self.engine.append(*(make_put(text, f"c{place}") for place, text in enumerate(texts)))
        self.said += texts
        await self.settle()

    async def _write_some(self, texts: Iterator[str]) -> None:
        for text in texts:
            chat = f"c{self._chance.randrange(CHATS)}"
            await self.engine.append(make_put(text, chat))
            self.said.append(text)
            await anyio.sleep(WRITERS / RATE)

    async def settle(self) -> None:
        """Until all is begun and no doorbell is left; the servers say that of what they stored a moment ago too."""
        async with fail_after(LONGEST):
            while not {*self.said} <= {what for _, what in self.list_told()} or await self.engine.depth(CONSUMER):
                state = (await self.engine.inspect()).streams[0]["state"]
                self.consumers = max(self.consumers, int(state["consumer_count"]))
                await anyio.sleep(GLANCE)

    async def wait_until_idle(self) -> None:
        """Wait until the bots are spread over the nodes, and none tries for a lease; report if that fails."""
        async with count_requests(",".join(one.url for one in self._servers), find=find_any_kind) as requests:
            with anyio.move_on_after(LONGEST):
                while True:
                    requests.clear()
                    await anyio.sleep(CALM)
                    if not any(requests[kind] for kind in OF_CHANGES):
                        return

    @asynccontextmanager
    async def counting(self) -> AsyncIterator[Counted]:
        """Count the requests from here on, in each second."""
        async with count_requests(",".join(one.url for one in self._servers), find=find_any_kind) as requests:
            counted, begun = Counted(0.0, requests, len(self.said)), time.monotonic()

            async def watch() -> None:
                while True:
                    before, since = requests.copy(), time.monotonic()
                    await anyio.sleep(1)
                    counted.note(requests - before, time.monotonic() - since)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch)
                yield counted
                tasks.cancel_scope.cancel()
            counted.seconds, counted.messages = time.monotonic() - begun, len(self.said) - counted.messages

    def count_watchers(self) -> float:
        """Subscriptions at the servers, for each node that is there."""
        states = [json.load(urllib.request.urlopen(f"http://127.0.0.1:{one.monitor}/connz")) for one in self._servers]
        found: list[int] = [one["subscriptions"] for state in states for one in state["connections"]]
        return sum(found) / len(found)

    async def kill(self) -> None:
        await self._replace_first(signal.SIGKILL)

    async def leave(self) -> None:
        await self._replace_first(signal.SIGTERM)

    async def _replace_first(self, number: signal.Signals) -> None:
        """The process that is there for longest goes, and another one comes."""
        group = self._list_living()[0]
        group.is_lost = True
        group.process.send_signal(number)
        async with fail_after(LONGEST):
            await until(lambda: group.process.poll() is not None)
        await self.add(1)

    async def stand_still(self) -> None:
        group = self._list_living()[0]
        group.is_lost = True
        group.process.send_signal(signal.SIGSTOP)
        await anyio.sleep(STILL)
        group.process.send_signal(signal.SIGCONT)

    def _list_living(self) -> list[Group]:
        return [group for group in self.groups if group.process.poll() is None]

    async def do(self, deeds: Sequence[Callable[[], Awaitable[None]]], trial: Trial) -> None:
        """One after the other, while people write."""
        is_over = anyio.Event()

        async def write() -> None:
            while not is_over.is_set():
                await self.write(int(RATE))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            for number, deed in enumerate(deeds):
                trial.tell(f"many nodes: {number + 1} of {len(deeds)}, {deed.__name__}, {len(self.said)} said")
                await deed()
                self.deeds[deed.__name__] += 1
            is_over.set()

    def list_begun_twice(self) -> list[str]:
        """The messages that several nodes began, though none of these was lost."""
        lost = {node for group in self.groups if group.is_lost for node in group.nodes}
        begun = [(node, what) for node, what in self.list_told() if what != "serves"]
        in_doubt = {what for node, what in begun if node in lost}
        return [
            what for what, count in Counter(what for _, what in begun).items() if count > 1 and what not in in_doubt
        ]

    def end(self) -> None:
        for group in self.groups:
            group.process.kill()
            group.process.wait()


def make_put(text: str, chat: str) -> NewRecord:
    return make_inbound_put(message(text, chat, id=text), key(chat), "", time.time())


async def try_many(trial: Trial, folder: Path) -> Findings:
    processes, each = trial.amount(10, 2), trial.amount(10, 4)
    with run_servers(folder / "nats", SERVERS) as servers:
        async with await open_nats(",".join(one.url for one in servers)) as engine:
            many = ManyNodes(servers, engine, folder, each)
            try:
                return await watch_many(many, trial, processes)
            finally:
                many.end()


async def watch_many(many: ManyNodes, trial: Trial, processes: int) -> Findings:
    trial.tell("many nodes: they begin")
    await many.add(processes)
    nodes = [node for group in many.groups for node in group.nodes]
    trial.tell("many nodes: bots are spread over them")
    await many.wait_until_idle()
    trial.tell("many nodes: nothing happens")
    async with many.counting() as idle:
        await anyio.sleep(trial.amount(30, 10))
    trial.tell("many nodes: people write")
    before = len(many.list_told())
    async with many.counting() as busy:
        for _ in range(ROUNDS):
            await many.write_at_once(len(nodes) * EACH_AT_ONCE)
    shares = Counter(node for node, _ in many.list_told()[before:])
    watchers = many.count_watchers()
    deeds = [many.kill, many.leave, many.stand_still] * trial.amount(2, 0) or [many.kill]
    async with many.counting() as changing:
        await many.do(deeds, trial)
    return Findings(
        nodes=len(nodes),
        said=len(many.said),
        audited=await audit(many.engine),
        begun_twice=many.list_begun_twice(),
        shares=[shares[node] for node in nodes],
        consumers=many.consumers,
        watchers=(watchers, many.count_watchers()),
        idle=idle,
        busy=busy,
        changing=changing,
        deeds=many.deeds,
    )


def prove(trial: Trial) -> Iterator[Row]:
    folder = trial.folder / "many-nodes"
    folder.mkdir()
    found = anyio.run(try_many, trial, folder)
    deeds = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in found.deeds.items())
    yield make_row("nodes at a time, of one journal", "", str(found.nodes), remarks=(f"processes of nodes: {deeds}",))
    lost, faults, twice = found.said - found.audited.turns, found.audited.faults, found.begun_twice
    yield make_row("their messages, and how many were lost", "0 lost", f"{found.said}, {lost} lost", lost == 0)
    yield make_row("answered twice, or out of order", "0", str(len(faults)), not faults)
    yield make_row("begun by two nodes of which none was lost", "0", str(len(twice)), not twice)
    yield spread_row(found)
    yield make_row("consumers of the journal", "1", str(found.consumers), found.consumers == 1)
    before, after = found.watchers
    is_steady = after <= before + 1 and after <= MOST_WATCHERS
    yield make_row(
        "what a node listens to, before and after", f"<= {MOST_WATCHERS}", f"{before:.1f}, {after:.1f}", is_steady
    )
    yield from request_rows(found)


def spread_row(found: Findings) -> Row:
    mean = sum(found.shares) / len(found.shares)
    off = max(abs(one - mean) for one in found.shares) / mean
    came = f"{off:.0%} ({min(found.shares)}-{max(found.shares)})"
    return make_row("most that a node's share differs by", f"<= {SPREAD:.0%}", came, off <= SPREAD)


def request_rows(found: Findings) -> Iterator[Row]:
    idle = (found.idle.rate - SHARED) / found.nodes
    remark = f"beside {SHARED:g} a second of all nodes together, for what one at a time does"
    yield make_row("requests a second of an idle node", f"<= {IDLE}", f"{idle:.2f}", idle <= IDLE, (remark,))
    each = (found.busy.requests.total() - found.idle.rate * found.busy.seconds) / found.busy.messages
    yield make_row("requests for a message", f"<= {FOR_A_MESSAGE}", f"{each:.1f}", each <= FOR_A_MESSAGE)
    allowed = 2 * (IDLE * found.nodes + FOR_A_MESSAGE * RATE)
    most = found.changing.most
    remark = ", ".join(f"{kind} {count}" for kind, count in found.changing.most_of.most_common())
    yield make_row("most in a second, as nodes come and go", f"<= {allowed:.0f}", str(most), most <= allowed, (remark,))
