"""An hour of traffic on all networks, with lines cut: all is answered.

Each network's server on loopback breaks its lines, says "too many", says what nobody knows, and delivers again what it
has delivered. The daemon runs as it does for everybody, with a model and a program that hears voice notes on this
machine. Two messages a second come, each with a number of its own by which it is answered: *late* is one whose answer
took more than a minute, *lost* one that had none after five. *twice* is no fault: where a line breaks in the very call
that sends, nobody knows whether it arrived, and it is sent again. *half*, *p99*: seconds until half of the messages,
and 99 of 100, were answered. *files*: messages with one; of them *voice* notes. Everybody begins a new conversation
now and then. *MB*: of the daemon's own, what it shares with others left out, from the first third of the time on (by
then conversations that nobody uses are let go); it stays within 5 %.
"""

import itertools
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from aiohttp import web
from anyio import to_thread

from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, Wire
from tests.adapters.wires import ROOMS, WIRES
from tests.proof_table import ROOT, Row, Trial
from tests.spine import until

COLUMNS = ("network", "messages", "files", "voice", "late", "lost", "twice", "half", "p99", "MB")
WIDEST = 8
LATE, LOST = 60.0, 300.0
ANEW = 20  # messages, and then a new conversation
EVERY = 3.0  # seconds from one message of a person to the next: two of them on three networks
TROUBLE = 3.0
WARM = 1 / 3  # of the time
MORE_MEMORY = 1.05
EARS = 'voice: {transcribe: {command: [cat, "{file}"]}}\n'  # the audio is its words
SETTINGS = f"access: {{rate: 100000}}\nsessions: {{turns: 16}}\n{EARS}"
NUMBER, ANSWER = re.compile(r"number (\d{5})"), re.compile(r"answer (\d{5})\.")


@dataclass
class Network:
    """The events and results of one network."""

    wire: Wire
    until: float
    waits: list[float] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    deeds: Counter[str] = field(default_factory=Counter)

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.until

    async def write(self, who: str, numbers: Iterator[int]) -> None:
        """In one way or another, and wait for the answer."""
        chance = random.Random(f"{self.wire.network}{who}")  # the same traffic at each run
        for count in itertools.count(1):
            if self.is_over:
                return
            if count % ANEW == 0:
                await self.wire.write("/new", by=who)
            number, begun = next(numbers), time.monotonic()
            said = f"number {number:05} please"
            match chance.randrange(8):
                case 0:
                    self.deeds["files"] += 1
                    await self.wire.upload((f"{number}.pdf", b"%PDF" * 1000), caption=said, by=who)
                case 1:
                    self.deeds.update(("files", "voice"))
                    await self.wire.upload(("voice.ogg", said.encode()), by=who)
                case 2:
                    await self.wire.mention(said, by=who)
                case 3:
                    await self.wire.react(await self.wire.write(said, by=who), "👍", by=who)
                case _:
                    await self.wire.write(said, by=who)
            wait = await self._wait_for_answer(number, begun)
            if wait > LATE:
                (self.lost if wait > LOST else self.late).append(said)
            self.waits.append(wait)
            await anyio.sleep(max(0.1, begun + EVERY * chance.uniform(0.5, 1.5) - time.monotonic()))

    async def trouble(self) -> None:
        """Break lines, refuse, and send unknown messages."""
        for deed in itertools.cycle(("cut", "refused", "noise", "again")):
            await anyio.sleep(TROUBLE)
            if self.is_over:
                return
            self.deeds[deed] += 1
            match deed:
                case "cut":
                    self.wire.hang_up()
                case "refused":
                    self.wire.flood(1.0)
                case "noise":
                    await self.wire.noise()
                case "again":
                    await self.wire.again()

    async def _wait_for_answer(self, number: int, begun: float) -> float:
        answer = f"answer {number:05}."
        while not any(answer in one.text for one in self.wire.shown[-200:]):
            if time.monotonic() > begun + LOST:
                break
            await anyio.sleep(0.02)
        return time.monotonic() - begun

    def row(self) -> Row:
        found = Counter(number for one in self.wire.shown for number in ANSWER.findall(one.text))
        twice = sum(count > 1 for count in found.values())
        told = [self.deeds[deed] for deed in ("files", "voice")]
        counts = (len(self.waits), *told, len(self.late), len(self.lost), twice)
        faults = [f"{self.wire.network}: not answered: {one}" for one in self.lost]
        faults += [f"{self.wire.network}: answered late: {one}" for one in self.late]
        times = [f"{one:.1f}" for one in times_of(self.waits)]
        return Row((self.wire.network, *map(str, counts), *times, ""), tuple(faults))


def times_of(waits: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(waits)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]


def prove(trial: Trial) -> Iterator[Row]:
    if trial.tree != ROOT:
        raise SystemExit("networks speaks with the servers of this checkout, so it tries this checkout alone")
    networks, megabytes = anyio.run(talk, trial.folder / "home", trial.amount(3600, 40))
    for network in networks:
        yield network.row()
    warm = megabytes[int(len(megabytes) * WARM) :]
    least, most = min(warm), max(warm)
    grown = not trial.is_short and most > least * MORE_MEMORY
    fault = (f"memory went from {least:.1f} to {most:.1f} MB",) if grown else ()
    whole = [wait for network in networks for wait in network.waits]
    cells = [str(len(whole)), *[""] * 5, *(f"{one:.1f}" for one in times_of(whole)), f"{least:.0f}-{most:.0f}"]
    yield Row(("all", *cells), fault)


async def talk(root: Path, seconds: int) -> tuple[list[Network], list[float]]:
    """Everybody, on all networks at once; and how much memory the daemon had, second by second."""
    async with AsyncExitStack() as stack:
        started, numbers, megabytes = GatewayProcess(root, forks=False), itertools.count(1), list[float]()
        stack.enter_context(started)
        wires = [make(root) for name, make in WIRES.items() if name in ROOMS]
        port = await serve_model(stack)
        started.configure(f'model: {{provider: openai, name: m, base_url: "http://127.0.0.1:{port}/v1"}}\n{SETTINGS}')
        for wire in wires:
            await stack.enter_async_context(wire.serving())
            allowed = ",".join(wire.known_as(one) for one in (ANN, BEN))
            started.environ |= {**wire.environ, f"{wire.network.upper()}_ALLOWED_USERS": allowed}
        await to_thread.run_sync(started.start)
        names = {wire.network for wire in wires}
        await until(partial(to_thread.run_sync, are_up, started, names), "all networks")
        networks = [Network(wire, time.monotonic() + seconds) for wire in wires]
        async with anyio.create_task_group() as tasks, anyio.create_task_group() as people:
            tasks.start_soon(weigh, started, megabytes, time.monotonic() + seconds)
            for network in networks:
                people.start_soon(network.trouble)
                for who in (ANN, BEN):
                    people.start_soon(network.write, who, numbers)
        return networks, megabytes


def are_up(gateway: GatewayProcess, networks: Set[str]) -> bool:
    return networks == {name for name, one in gateway.call("status")["platforms"].items() if one["up"]} & networks


async def weigh(gateway: GatewayProcess, megabytes: list[float], until: float) -> None:
    assert gateway.process
    while time.monotonic() < until:
        megabytes.append(own_memory(gateway.process.pid))
        await anyio.sleep(1)


def own_memory(pid: int) -> float:
    """Megabytes. What it shares with others counts for less whenever one more of them begins, so it is left out."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) / 1024


async def serve_model(stack: AsyncExitStack) -> int:
    """A model that answers every number, in three pieces; its port."""
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/chat/completions", answer_numbers)
    runner = web.AppRunner(app)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return int(runner.addresses[0][1])


async def answer_numbers(request: web.Request) -> web.StreamResponse:
    asked = await request.json()
    text = "\n".join(f"answer {number}." for number in find_numbers(asked["messages"])) or "Nothing was asked."
    if not asked.get("stream"):
        message = {"role": "assistant", "content": text}
        return web.json_response({**HEAD, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    third = len(text) // 3 + 1
    for at in range(0, len(text), third):
        await response.write(encode_chunk({"content": text[at : at + third]}))
        await anyio.sleep(0.05)
    await response.write(encode_chunk({}, "stop") + b"data: [DONE]\n\n")
    return response


HEAD = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": {"total_tokens": 15}}


def find_numbers(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Find the numbers after the last answer."""
    last = max((at for at, one in enumerate(messages, 1) if one["role"] == "assistant"), default=0)
    return list(dict.fromkeys(NUMBER.findall(json.dumps(messages[last:]))))


def encode_chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({**HEAD, "object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"
