"""The reactions under messages: what stays of them in memory, and what an earlier life left."""

import tracemalloc
from typing import Any

import anyio
import msgspec

from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.incoming import RecentMessages
from gateway.adapters.shared.status_reactions import NetworkReactions, StatusReactions
from gateway.chats.rules import ChatDisplay
from gateway.dispatcher.turn_signs import MessageState, TurnSign
from gateway.engine.interface import Engine, NewRecord
from gateway.hooks import HookRegistry
from gateway.messages.message import Address, Message, Receipt
from gateway.records import subjects
from tests.engine.memory_engine import MemoryEngine
from tests.spine import message, until

WARM, MORE = 600, 1200  # messages
LEAST_GROWTH = 50_000  # bytes: less is noise
DISPLAY = ChatDisplay("off", reactions=True, typing=False)


async def test_what_was_answered_long_ago_takes_no_memory() -> None:
    registry, recent, engine = HookRegistry(), RecentMessages(), MemoryEngine()
    presence = Presence("net", registry, print)
    network = NetworkReactions({"seen": "a", "working": "b", "done": "c", "failed": "d"}, show, show, 0.0, lambda _: "")
    reactions = StatusReactions(network, lambda _: DISPLAY, presence)
    take = reactions.noting(receive)

    async def answer(count: int) -> None:
        for _ in range(count):
            said = message("what is it?")
            await take(said)
            recent.note(said)
            for state in ("working", "done"):
                await tell(engine, TurnSign(f"turn of {said.id}", said.address, said.id, state))
            await anyio.lowlevel.checkpoint()

    async with registry, engine, anyio.create_task_group() as tasks:
        tasks.start_soon(reactions.run, engine)
        await anyio.wait_all_tasks_blocked()
        tracemalloc.start()
        try:
            await answer(WARM)
            warm, _ = tracemalloc.get_traced_memory()
            await answer(MORE)
            assert tracemalloc.get_traced_memory()[0] - warm < LEAST_GROWTH
        finally:
            tracemalloc.stop()
        tasks.cancel_scope.cancel()


async def test_a_reply_that_answers_no_message_touches_none() -> None:
    registry, engine, touched = HookRegistry(), MemoryEngine(), list[str]()

    async def touch(_address: Address, message: str, _mark: str) -> None:
        touched.append(message)

    marks: dict[MessageState, str] = {"seen": "a", "working": "b", "done": "c", "failed": "d"}
    network = NetworkReactions(marks, touch, touch, 0.0, lambda _: "", time_of=lambda _: 0.0)
    reactions = StatusReactions(network, lambda _: DISPLAY, Presence("net", registry, print))
    async with registry, engine, anyio.create_task_group() as tasks:
        tasks.start_soon(reactions.run, engine)
        for number in ("", "7"):
            reactions.note_answered(Address("net", "1"), number)
        await until(lambda: "7" in touched, "what an earlier life left")
        assert "" not in touched
        tasks.cancel_scope.cancel()


async def test_a_turn_that_ends_before_its_message_is_noted_as_taken_shows_its_end() -> None:
    registry, engine, shown = HookRegistry(), MemoryEngine(), list[str]()

    async def put(_address: Address, _message: str, mark: str) -> None:
        shown.append(mark)

    async def answer_at_once(message: Message, *_extra: NewRecord, **_how: Any) -> Receipt:
        for state in ("working", "done"):
            await tell(engine, TurnSign("a turn", message.address, message.id, state))
        await anyio.wait_all_tasks_blocked()
        return Receipt("a session", seq=1)

    network = NetworkReactions({"seen": "a", "working": "b", "done": "c", "failed": "d"}, put, show, 0.0, lambda _: "")
    reactions = StatusReactions(network, lambda _: DISPLAY, Presence("net", registry, print))
    async with registry, engine, anyio.create_task_group() as tasks:
        await tasks.start(reactions.run, engine)
        await reactions.noting(answer_at_once)(message("what is it?"))
        await until(lambda: bool(shown), "a reaction")
        await anyio.wait_all_tasks_blocked()
        assert shown[-1] == "c"
        tasks.cancel_scope.cancel()


async def test_a_reaction_that_is_due_at_a_stop_is_still_made() -> None:
    registry, engine, shown, is_called = HookRegistry(), MemoryEngine(), list[str](), anyio.Event()

    async def put(_address: Address, _message: str, mark: str) -> None:
        if not is_called.is_set():
            is_called.set()
            await anyio.sleep_forever()
        shown.append(mark)

    network = NetworkReactions({"seen": "a", "working": "b", "done": "c", "failed": "d"}, put, show, 0.0, lambda _: "")
    reactions = StatusReactions(network, lambda _: DISPLAY, Presence("net", registry, print))
    async with registry, engine, anyio.create_task_group() as tasks:
        await tasks.start(reactions.run, engine)
        said = message("what is it?")
        await reactions.noting(receive)(said)
        await is_called.wait()
        await tell(engine, TurnSign("a turn", said.address, said.id, "done"))
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert shown == ["c"]


async def tell(engine: Engine, sign: TurnSign) -> None:
    await engine.publish(subjects.sign_subject_of("net"), msgspec.json.encode(sign))


async def receive(message: Message, *extra: NewRecord, **how: Any) -> Receipt:
    return Receipt("a session", seq=1)


async def show(_address: Address, _message: str, _mark: str) -> None: ...
