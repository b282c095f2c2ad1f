"""`agent:init` is emitted once for each agent in a process, before its first turn."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.agent import Agent
from gateway.agent.models.script import script
from gateway.messages.message import Address, Message
from gateway.sessions.session import Session
from tests.dispatcher.room import Chat, chat
from tests.spine import until

HELPER = Agent("helper", script(), agents=(Agent("deep", script()),))


def agent(name: str) -> Agent:
    return Agent(name, script(*["ok"] * 9), agents=(HELPER,))


class Agents:
    """The agents of a configuration: one for each chat that is named here, `main` for all others."""

    def __init__(self, *routes: str) -> None:
        self._routes = routes
        self.read_again()

    def read_again(self) -> None:
        """What a reload does: the same names, other objects."""
        self._agents = {name: agent(name) for name in ("main", *self._routes)}

    def choose(self, message: Message, _session: Session) -> Agent:
        return self._agents.get(message.address.chat_id, self._agents["main"])


async def write(room: Chat, chat_id: str, times: int = 1) -> None:
    for _ in range(times):
        before = len(room.net.sent)
        await room.write("hello", address=Address("net", chat_id))
        await until(lambda before=before: len(room.net.sent) > before)  # type: ignore[misc]


async def told(room: Chat) -> list[tuple[str, str]]:
    return [(event["agent"], event["kind"]) for event in await room.told("agent:init")]


MAIN = [("main", "main"), ("helper", "sub-agent"), ("deep", "sub-agent")]


@pytest.mark.row("STR-19")
@pytest.mark.row("STR-58")
async def test_an_agent_and_those_below_it_are_told_of_once_before_the_first_turn() -> None:
    async with chat(choose=Agents().choose) as room:
        await write(room, "room", times=2)
        assert await told(room) == MAIN
        names = [name for name, _ in room.events]
        assert names.index("agent:init") < names.index("agent:start")


async def test_lanes_that_begin_together_tell_of_their_agent_once() -> None:
    async with chat(choose=Agents().choose) as room:
        for number in range(4):
            await room.write("hello", address=Address("net", f"room {number}"))
        await room.hear(4)
        assert await told(room) == MAIN


async def test_a_second_agent_is_told_of_when_it_is_first_used_and_a_reload_tells_nothing_again() -> None:
    agents = Agents("science")
    async with chat(choose=agents.choose) as room:
        await write(room, "room")
        assert await told(room) == MAIN
        await write(room, "science")
        assert await told(room) == [*MAIN, ("science", "main")]
        agents.read_again()
        await write(room, "room")
        await write(room, "science")
        assert await told(room) == [*MAIN, ("science", "main")]


async def test_a_sub_agent_that_a_reload_brings_is_told_of() -> None:
    current = [agent("main")]
    async with chat(choose=lambda message, session: current[0]) as room:
        await write(room, "room")
        current[0] = dataclasses.replace(current[0], agents=(HELPER, Agent("new", script())))
        await write(room, "room")
        assert await told(room) == [*MAIN, ("new", "sub-agent")]


async def test_a_sub_agent_that_answers_a_chat_of_its_own_is_not_told_of_again() -> None:
    async with chat(
        choose=lambda message, session: HELPER if message.address.chat_id == "lab" else agent("main")
    ) as room:
        await write(room, "room")
        await write(room, "lab")
        assert await told(room) == MAIN


@pytest.mark.row("STR-12")
async def test_it_is_told_to_plain_functions_and_to_coroutines() -> None:
    heard: list[str] = []

    async def slow(_name: str, fields: Mapping[str, Any]) -> None:
        heard.append(f"awaited {fields['agent']}")

    async with chat(choose=lambda message, session: Agent("main", script("ok"))) as room:
        room.hooks.watch("agent:init", lambda _name, fields: heard.append(fields["agent"]))
        room.hooks.watch("agent:init", slow)
        await write(room, "room")
        await room.hooks.settled()
        assert sorted(heard) == ["awaited main", "main"]
