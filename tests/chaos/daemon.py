"""The real daemon under siege: people on two networks, while it is killed, stopped, and its clock is set.

The chat network is Telegram's server on loopback, which lives on when the gateway dies, as the real one does, and
records what it was asked to show. At the end the journal itself is read.
"""

import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import GatewayError, NotRunning
from gateway.records import records
from gateway.testing import GatewayProcess
from tests.adapters.telegram_wire import TelegramWire
from tests.audit import Audit, audit, everything
from tests.chaos.machine import set_clock
from tests.chaos.people import Typist
from tests.waits import fail_after

ROOT = Path(__file__).parents[2]
DAY = 86400.0
GLANCE = 0.05
LONGEST = 220.0


@dataclass(frozen=True)
class Plan:
    """The parts of the siege. `each` is the number of messages of each person."""

    chats: int
    typists: int
    each: int
    kills: int
    seed: int
    longest_life: float = 1.5
    jumps: bool = True
    ballast: Path | None = None  # a file on the home's own small disk, which fills it
    longest: float = LONGEST

    @property
    def said(self) -> int:
        return (self.chats + self.typists) * self.each


@dataclass
class Siege:
    """The attacks, and the later reports of the journal and the network."""

    plan: Plan
    wire: TelegramWire
    typists: list[Typist]
    done: Counter[str] = field(default_factory=Counter)
    found: Audit = field(default_factory=Audit)
    owed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # chat -> texts, as they are owed
    doubts: Counter[tuple[str, str]] = field(default_factory=Counter)  # chat, text -> calls that a kill cut off
    seen: list[str] = field(default_factory=list)  # what `status` said of the intake
    seconds: float = 0.0

    @property
    def shown(self) -> dict[str, list[str]]:
        shown: dict[str, list[str]] = defaultdict(list)
        for one in self.wire.shown:
            shown[one.chat].append(one.text)
        return shown

    def unexplained(self) -> list[str]:
        """Every message that the network has twice, or not, or too early, for which the journal knows no reason."""
        faults: list[str] = []
        for chat, owed in self.owed.items():
            shown = self.shown[chat]
            first = list(dict.fromkeys(shown))
            if first != list(dict.fromkeys(owed)):
                faults.append(f"chat {chat} shows {first}, owed were {owed}")
            for text, count in Counter(shown).items():
                if not 0 <= count - owed.count(text) <= self.doubts[chat, text]:
                    faults.append(f"chat {chat} shows {text!r} {count} times, {self.doubts[chat, text]} in doubt")
        return faults

    def twice(self) -> int:
        return sum(len(texts) - len(set(texts)) for texts in self.shown.values())

    def unanswered(self) -> list[str]:
        """List a terminal user's messages without an answer, or with a wrong one."""
        return [
            f"{name}: {answer}"
            for typist in self.typists
            for name, answer in typist.answers.items()
            if not is_given_up(answer) and right_answer(typist, name) not in answer["reply"]
        ]

    def given_up(self) -> int:
        """Count the messages that got an apology, as if they had killed the gateway."""
        return sum(is_given_up(answer) for typist in self.typists for answer in typist.answers.values())


def is_given_up(answer: dict[str, Any]) -> bool:
    return answer["status"] == "failed" and "ended during it each time" in answer["error"]


def right_answer(typist: Typist, name: str) -> str:
    return question(typist.number, int(name.rpartition("-")[2]))[1]


def question(who: int, at: int) -> tuple[str, str]:
    """Return a question and its answer: no two are alike."""
    number = who * 1000 + at
    return f"what is {number} + 1", f"The result is {number + 1}."


class Besieged(GatewayProcess):
    """A gateway on a machine whose clock can be set."""

    def __init__(self, root: Path, clock: Path, tree: Path = ROOT) -> None:
        super().__init__(root)
        self.clock = clock
        self.tree = tree
        self.log = clock.with_name(f"{root.name}.log")  # not on the disk that is filled
        set_clock(clock, 0.0)

    def spawn(self, *args: str, **more: object) -> "subprocess.Popen[str]":
        environ = more.get("environ")
        python = sys.executable if self.tree == ROOT else str(self.tree / ".venv" / "bin" / "python")
        command = [python, str(ROOT / "tests" / "chaos" / "machine.py"), str(self.clock), *args]
        env = {**self.environ, **(environ if isinstance(environ, dict) else {})}
        with self.log.open("a") as log:
            return subprocess.Popen(command, cwd=self.tree, env=env, stdout=log, stderr=log, text=True)


async def besiege(root: Path, plan: Plan) -> Siege:
    """Let everybody talk while it is killed again and again; then let it finish, and judge."""
    wire, begun = TelegramWire(), time.monotonic()
    gateway = Besieged(root, root.parent / "clock")
    people = [str(5000 + number) for number in range(plan.chats)]
    gateway.configure(settings(people))
    siege = Siege(plan, wire, [Typist(number, gateway.home.socket) for number in range(plan.typists)])
    with gateway:
        async with fail_after(plan.longest), wire.serving(), anyio.create_task_group() as tasks:
            length = plan.kills * plan.longest_life
            for typist in siege.typists:
                texts = [question(typist.number, at)[0] for at in range(plan.each)]
                tasks.start_soon(typist.talk, texts, length / plan.each / 2)
            tasks.start_soon(write, wire, people, plan, length)
            await harass(gateway, siege)
            await start(gateway, wire)
            await finish(gateway, siege)
        await to_thread.run_sync(gateway.stop)
    await judge(gateway, siege)
    siege.seconds = time.monotonic() - begun
    return siege


def settings(people: list[str]) -> str:
    ids = ", ".join(f"'{one}'" for one in people)
    return (
        f"access: {{owners: {{telegram: [{ids}]}}}}\n"
        "sessions: {too_old: 0s, turns: 32, turns_per_person: 32}\n"
        "platforms: {telegram: {streaming: 'off'}}\n"
    )


async def write(wire: TelegramWire, people: list[str], plan: Plan, length: float) -> None:
    """Let everyone on the chat network write, in a random order, even if the gateway is away."""
    chance = random.Random(plan.seed)
    turns = [person for person in range(plan.chats) for _ in range(plan.each)]
    chance.shuffle(turns)
    said: Counter[int] = Counter()
    for number, person in enumerate(turns):
        await wire.write(question(10_000 + person, said[person])[0], by=people[person])
        said[person] += 1
        if number % 10 == 9:
            await anyio.sleep(length * 10 / len(turns))


async def harass(gateway: Besieged, siege: Siege) -> None:
    chance = random.Random(siege.plan.seed + 1)
    while siege.done["kills"] < siege.plan.kills:
        await start(gateway, siege.wire)
        deed = DEEDS[siege.done["kills"] % len(DEEDS)]
        await anyio.sleep(chance.uniform(0, siege.plan.longest_life))
        await deed(gateway, siege, chance)
        await to_thread.run_sync(gateway.kill)
        siege.wire.hang_up()
        siege.done["kills"] += 1
    set_clock(gateway.clock, 0.0)


async def nothing_else(_gateway: Besieged, _siege: Siege, _chance: random.Random) -> None:
    """The plain kill."""


async def pause(gateway: Besieged, siege: Siege, chance: random.Random) -> None:
    assert gateway.process
    gateway.process.send_signal(signal.SIGSTOP)
    await anyio.sleep(chance.uniform(0.1, 0.8))
    gateway.process.send_signal(signal.SIGCONT)
    await anyio.sleep(0.1)
    siege.done["stops"] += 1


async def jump(gateway: Besieged, siege: Siege, chance: random.Random) -> None:
    if siege.plan.jumps:
        set_clock(gateway.clock, chance.choice((-DAY, -60.0, 60.0, DAY)))
        await anyio.sleep(0.2)
        siege.done["jumps"] += 1


async def crowd_the_disk(gateway: Besieged, siege: Siege, _chance: random.Random) -> None:
    """Others write to the same disk, and wait for it: each of the journal's writes takes longer."""
    beside = gateway.home.root.parent / "noise"
    command = ["dd", "if=/dev/zero", f"of={beside}", "bs=4k", "count=2000", "oflag=dsync"]
    noise = await anyio.open_process(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await anyio.sleep(0.5)
    with suppress(ProcessLookupError):
        noise.kill()
    await noise.aclose()
    beside.unlink(missing_ok=True)
    siege.done["crowds"] += 1


async def fill_the_disk(gateway: Besieged, siege: Siege, _chance: random.Random) -> None:
    """Fill the disk for a while; then there is room again, without a restart."""
    if siege.plan.ballast is None:
        return
    fill(siege.plan.ballast)
    siege.done["fills"] += 1
    with anyio.move_on_after(30):
        while not any("no room" in one for one in siege.seen[-1:]):
            await look(gateway, siege)
            await anyio.sleep(GLANCE)
    siege.plan.ballast.unlink()
    with anyio.move_on_after(30):
        while siege.seen[-1:] != ["open"]:
            await look(gateway, siege)
            await anyio.sleep(GLANCE)


DEEDS = (nothing_else, pause, fill_the_disk, jump, crowd_the_disk)


def fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))


async def look(gateway: Besieged, siege: Siege) -> None:
    try:
        siege.seen.append((await to_thread.run_sync(gateway.call, "status"))["intake"])
    except (GatewayError, OSError):
        siege.seen.append("no answer")


async def start(gateway: Besieged, wire: TelegramWire) -> None:
    gateway.process = gateway.spawn("run", environ=dict(wire.environ))
    await until(lambda: is_ready(gateway))


def is_ready(gateway: Besieged) -> bool:
    assert gateway.process
    assert gateway.process.poll() is None, "it ended by itself; see its log"
    try:
        return bool(gateway.call("status")["state"] == "ready")
    except (NotRunning, OSError):
        return False


async def until(is_so: Callable[[], bool]) -> None:
    """The siege as a whole has a limit."""
    while not await to_thread.run_sync(is_so):  # noqa: ASYNC110 - another process tells nobody
        await anyio.sleep(GLANCE)


async def finish(gateway: Besieged, siege: Siege) -> None:
    """Until everybody has said everything, and nothing is left to be answered or sent."""
    plan = siege.plan

    def is_over() -> bool:
        told = sum(len(typist.answers) for typist in siege.typists)
        if told < plan.typists * plan.each or siege.wire.updates:
            return False
        backlog = gateway.call("status")["backlog"]
        written = len([one for one, _ in siege.wire.calls if one == "sendMessage"])
        return not backlog["sessions"] and not any(backlog["replies"].values()) and bool(written)

    await until(is_over)


async def judge(gateway: Besieged, siege: Siege) -> None:
    async with await open_sqlite(gateway.home.journal) as engine:
        siege.found = await audit(engine, is_sent=True)
        by_subject = await everything(engine)
    for subject, outs in by_subject.items():
        if subject.startswith("gw.out.telegram."):
            place = subject.removeprefix("gw.out.").rpartition(".")[0]
            journal = [kept for _, kept in by_subject[f"gw.sent.{place}"]]
            for seq, out in outs:
                chat, text = out.reply.address.chat_id, out.reply.text
                if out.reply.is_empty:  # it takes away what an earlier try has shown
                    continue
                siege.owed[chat].append(text)
                siege.doubts[chat, text] += doubts_about(seq, journal)


def doubts_about(seq: int, journal: list[records.SendRecord]) -> int:
    """Count the calls of this reply that were begun, and whose end is unknown."""
    mine = [kept for kept in journal if kept.out == seq]
    return sum(
        isinstance(one, records.SendIntent) and isinstance(then, records.SendIntent) for one, then in pairwise(mine)
    )
