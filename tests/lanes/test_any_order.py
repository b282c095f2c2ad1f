"""Whatever people, nodes and accidents do in whatever order: every message is answered once, in its order.

A plan is a list of things that happen. Nodes are killed (nothing that they had begun reaches the journal any more),
paused and continued, stopped in good order; people write, stop, answer and reset. In the end one healthy node is left
alone with the journal, and the journal is audited.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
import anyio.abc
import anyio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from gateway.config.settings import SessionSettings
from gateway.lanes.lanes import Lanes
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.transcript import Entry
from gateway.records import records
from gateway.sessions import transitions
from gateway.sessions.repository import SessionRepository
from tests.audit import audit
from tests.engine.memory_engine import MemoryEngine
from tests.lanes.desk import QUICK, echo
from tests.late import Gate, Late
from tests.spine import change_session, key, message, until

SETTINGS = replace(
    QUICK,
    sessions=SessionSettings(turns=2),
    lease=0.02,
    ack_wait=0.02,
    grace=0.005,
    attempts=50,
    pauses=(0.0,),
    folded=2,
)
CHATS = st.sampled_from("123")
WHICH = st.integers(0, 1)
ACTIONS = st.one_of(
    st.tuples(st.just("say"), CHATS, st.sampled_from(["plain", "steps", "asks", "slow", "fails", "/new"])),
    st.tuples(st.just("stop"), CHATS),
    st.tuples(st.just("answer"), CHATS),
    st.tuples(st.just("reset"), CHATS),
    st.tuples(st.just("kill"), WHICH),
    st.tuples(st.just("pause"), WHICH),
    st.tuples(st.just("go on"), WHICH),
    st.tuples(st.just("drain"), WHICH),
    st.tuples(st.just("freeze"), WHICH, CHATS, st.sampled_from(["steps", "slow", "asks"])),
    st.tuples(st.just("breathe"), st.sampled_from([0, 0.002, 0.03])),
)


@dataclass
class Node:
    lanes: Lanes
    gate: Gate
    scope: anyio.CancelScope


@dataclass
class World:
    """Two nodes, three conversations."""

    engine: MemoryEngine
    tasks: anyio.abc.TaskGroup
    nodes: list[Node] = field(default_factory=list)
    effects: list[tuple[str, int]] = field(default_factory=list)
    count: int = 0

    async def work(self, turn: LaneTurn) -> LaneResult:
        """Does what the message says; `effects` notes what could not be taken back."""
        text = turn.messages[0].text.split()[0]
        if text == "steps":
            for hop in range(len(turn.open.steps), 3):
                entry = Entry("assistant", str(hop))
                await turn.record(records.LlmStep(turn_id=turn.turn_id, hop=hop, entry=entry))
                self.effects.append((turn.turn_id, hop))
        if text == "asks" and "q" not in turn.open.answers:
            return LaneResult(questions={"q": "?"}, wait=0.05)
        if text == "slow":
            await anyio.sleep(0.01)
        if text == "fails" and turn.open.attempt < 3:
            raise RuntimeError("as told")
        if text == "/new":
            opened = transitions.begin_session(turn.session, 0.0, "new")
            return structs.replace(echo(turn), entries=(), changes=(opened,))
        return echo(turn)

    async def start(self, at: int) -> None:
        gate = Gate()
        engine = Late(self.engine, gate)
        self.count += 1
        lanes = Lanes(engine, SessionRepository(engine), self.work, SETTINGS, node=f"n{self.count}")
        node = Node(lanes, gate, anyio.CancelScope())
        self.nodes[at : at + 1] = [node]

        async def run() -> None:
            with node.scope:
                await lanes.run()

        self.tasks.start_soon(run)
        await anyio.lowlevel.checkpoint()

    async def say(self, chat: str, text: str) -> None:
        self.count += 1
        lanes = Lanes(self.engine, SessionRepository(self.engine), self.work, QUICK)
        await lanes.accept(message(f"{text} {self.count}", chat), key(chat))

    async def stop(self, chat: str) -> None:
        lanes = Lanes(self.engine, SessionRepository(self.engine), self.work, QUICK)
        await lanes.interrupt(key(chat))

    async def answer(self, chat: str) -> None:
        await Lanes(self.engine, SessionRepository(self.engine), self.work, QUICK).answer(key(chat), "q", "yes")

    async def reset(self, chat: str) -> None:
        sessions = SessionRepository(self.engine)
        await change_session(sessions, key(chat), lambda session: transitions.begin_session(session, 0.0, "new"))

    async def kill(self, at: int) -> None:
        """As `kill -9` looks from the journal: nothing more comes."""
        self.nodes[at].gate.pause()
        self.nodes[at].scope.cancel()
        await self.start(at)

    async def pause(self, at: int) -> None:
        self.nodes[at].gate.pause()

    async def freeze(self, at: int, chat: str, text: str) -> None:
        """Pause a node in the middle of something, for longer than its lease."""
        await self.say(chat, text)
        await anyio.sleep(0.002)
        await self.pause(at)
        await anyio.sleep(0.03)

    async def go_on(self, at: int) -> None:
        self.nodes[at].gate.go_on()

    async def drain(self, at: int) -> None:
        if self.nodes[at].gate.is_open:
            await self.nodes[at].lanes.drain(0.005)
            await self.start(at)

    async def breathe(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def is_quiet(self) -> bool:
        return (await audit(self.engine)).faults == []


async def live(plan: list[tuple[str, ...]]) -> None:
    async with MemoryEngine() as engine, anyio.create_task_group() as tasks:
        world = World(engine, tasks, nodes=[])
        for at in (0, 1):
            await world.start(at)
        verbs_of: dict[str, Callable[..., Awaitable[None]]] = {
            name: getattr(world, name.replace(" ", "_"))
            for name in ("say", "stop", "answer", "reset", "kill", "pause", "freeze", "go on", "drain", "breathe")
        }
        for name, *args in plan:
            await verbs_of[name](*args)
        for node in world.nodes:
            node.gate.go_on()
        await anyio.sleep(0.01)
        await world.kill(1)
        with suppress(AssertionError):  # the faults say more
            await until(world.is_quiet, limit=5)
        found = await audit(engine)
        assert found.faults == [], found.faults
        assert found.turns <= found.inbound
        assert len(set(world.effects)) == len(world.effects), "an effect after a step happened twice"
        world.nodes[0].scope.cancel()
        tasks.cancel_scope.cancel()


@settings(max_examples=30, deadline=None)
@given(st.lists(ACTIONS, max_size=30))
def test_every_message_is_answered_once_and_in_order_whatever_happens(plan: list[tuple[str, ...]]) -> None:
    anyio.run(live, plan)
