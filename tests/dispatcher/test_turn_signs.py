"""The sign of work: sent by the node of the turn, shown by the node of the network, as long as the turn runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from msgspec.structs import replace

from gateway.adapters.shared.typing_indicator import TypingIndicator
from gateway.agent.ports import TurnResult
from gateway.chats.rules import ChatDisplay
from gateway.dispatcher.turn_signs import TurnSign, TurnSigns, find_end_state, tail_turn_signs
from gateway.engine.interface import Engine
from gateway.events import Question
from gateway.messages.message import Address
from tests.outbox.conftest import engine
from tests.spine import until

__all__ = ["engine"]

AT = Address("net", "1", "group", "7")
WORKING = TurnSign("t1", AT, "m1", "working")
REPEAT = 0.01
DISPLAY = ChatDisplay("off", reactions=True, typing=True)


class Node:
    """Where turns run; `told` are the signs that another node hears for the bot `net`."""

    def __init__(self, engine: Engine) -> None:
        self.turns = TurnSigns(engine, REPEAT)
        self.told: list[TurnSign] = []

    async def hear(self, engine: Engine) -> None:
        async for sign in await tail_turn_signs(engine, "net"):
            self.told.append(sign)


@asynccontextmanager
async def serving(engine: Engine) -> AsyncIterator[Node]:
    node = Node(engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(node.hear, engine)
        await anyio.wait_all_tasks_blocked()
        await tasks.start(node.turns.run)
        yield node
        tasks.cancel_scope.cancel()


async def test_a_turn_is_at_work_until_it_ends(engine: Engine) -> None:
    async with serving(engine) as node:

        async def work() -> TurnResult:
            await until(lambda: node.told[2:] == [WORKING] * (len(node.told) - 2) != [], "it, again and again")
            return TurnResult("Hello.")

        assert (await node.turns.show(WORKING, work, find_end_state)).reply == "Hello."
        await until(lambda: node.told[-1].state == "done", "its end")
        count = len(node.told)
        await anyio.sleep(3 * REPEAT)
        assert len(node.told) == count, "that is told once"
        ended = TurnSign("t2", AT, "m2", "failed", is_resumed=True)
        await node.turns.end(ended)
        await until(lambda: node.told[-3:] == [ended] * 3, "again where its network may not have been there")

        async def say() -> TurnResult:
            return TurnResult("Hi.")

        await node.turns.show(replace(WORKING, address=Address("terminal", "1")), say, find_end_state)
        assert set(node.told[count:]) == {ended}


async def test_an_answer_that_grows_needs_no_sign_beside_it(engine: Engine) -> None:
    growing, shown, asked = [True], list[Address](), list[float]()

    async def show(address: Address) -> None:
        shown.append(address)

    def shows_words(_: Address, seconds: float) -> bool:
        asked.append(seconds)
        return growing[0]

    indicator = TypingIndicator("net", show, REPEAT, lambda _: DISPLAY, shows_words)
    async with serving(engine) as node, anyio.create_task_group() as tasks:
        await tasks.start(indicator.run, engine)

        async def answer() -> TurnResult:
            await until(lambda: len(asked) > 3, "looks")
            assert shown == []
            growing[0] = False
            await until(lambda: shown, "the sign, once nothing grows")
            return TurnResult("Hello.")

        await node.turns.show(WORKING, answer, find_end_state)
        assert set(asked) == {REPEAT}
        tasks.cancel_scope.cancel()


async def test_how_it_ended_is_seen_at_its_result() -> None:
    asked = TurnResult(questions=(Question("q", "May I?", "a hook", "q"),), status="paused")
    assert find_end_state(asked) == "seen"
    assert find_end_state(TurnResult(error="it broke", status="failed")) == "failed"
    assert find_end_state(TurnResult(status="interrupted")) == ""
    assert find_end_state(TurnResult("Hello.")) == "done"


async def test_what_is_cut_off_is_not_at_work_any_more(engine: Engine) -> None:
    shown, hidden = list[Address](), list[Address]()

    async def show(address: Address) -> None:
        shown.append(address)

    async def hide(address: Address) -> None:
        hidden.append(address)

    indicator = TypingIndicator("net", show, REPEAT, lambda _: DISPLAY, lambda *_: False, hide, lasts=0.1)
    async with serving(engine) as node, anyio.create_task_group() as tasks:
        await tasks.start(indicator.run, engine)

        async def break_off() -> TurnResult:
            await until(lambda: len(shown) > 15, "the sign for longer than one lasts")
            raise ValueError("the work is cut off, and nobody says so")

        with suppress(ValueError):
            await node.turns.show(WORKING, break_off, find_end_state)
        await until(lambda: hidden == [AT], "its end")
        count = len(shown)
        await anyio.sleep(3 * REPEAT)
        assert (len(shown), set(shown)) == (count, {AT})
        tasks.cancel_scope.cancel()
