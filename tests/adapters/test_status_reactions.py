"""Reactions under what a person wrote, on each network that has them: seen, being answered, answered, failed."""

from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest

from gateway.events import Event
from gateway.testing.live_gateway import until
from gateway.testing.networks.house import housed
from gateway.testing.networks.wire import ANN, GROUP
from gateway.testing.patience import LONGEST
from tests.adapters.discord_rest import Refused as DiscordRefused
from tests.adapters.discord_wire import DiscordWire
from tests.adapters.slack_web import Refused
from tests.adapters.slack_wire import SlackWire
from tests.adapters.telegram_wire import Refused as TelegramRefused
from tests.adapters.telegram_wire import TelegramWire
from tests.adapters.wires import WIRES

PAUSE = 6  # seconds that a network wants, longer than an answer takes
ALL_CHANGES = 180.0  # seconds for three changes of each of thirty messages, with a pause of 0.6 s behind each
SEEN, WORKING, DONE, FAILED = range(4)
MARKS = {
    "telegram": ["👀", "🤔", "👍", "👎"],
    "discord": ["👀", "🤔", "✅", "❌"],
    "slack": ["eyes", "hourglass_flowing_sand", "white_check_mark", "x"],
}
SHOWN = "display: {reactions: true}\n"
SLOW = {"chunks": [f"word{number} " for number in range(20)], "delay": "150ms"}
ON_ONE = pytest.mark.parametrize("wire", ["discord"], indirect=True)  # what no network does in its own way


@pytest.fixture(params=list(MARKS))
async def wire(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    wire = WIRES[request.param](tmp_path / "home")
    async with wire.serving():
        yield wire


def mark(wire: Any, state: int) -> str:
    return MARKS[wire.network][state]


async def bears(wire: Any, message: str, *states: int, limit: float = LONGEST) -> None:
    """Wait until a message has just these reactions."""
    marks = [mark(wire, state) for state in states]
    await until(lambda: wire.reactions.get(message, []) == marks, f"{marks} under it, not {wire.reactions},", limit)


async def test_a_message_is_seen_being_answered_and_answered(wire: Any, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW, settings=SHOWN) as house:
        message = await wire.write("hello")
        await bears(wire, message, WORKING)
        await house.shows("word19")
        await bears(wire, message, DONE)
        assert wire.reacted[-2:] == [mark(wire, WORKING), mark(wire, DONE)]
        assert len(wire.reacted) <= 3, "each state once at most"


async def test_a_message_that_waits_is_seen_and_a_failure_is_shown(wire: Any, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW, {"error": {"kind": "network"}}, settings=SHOWN) as house:
        await wire.write("hello")
        await house.hears("agent:start")
        second = await wire.write("and you?")
        await bears(wire, second, SEEN)
        await bears(wire, second, FAILED)


async def test_without_reactions_no_more_is_shown_than_that_somebody_is_at_work(wire: Any, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW) as house:

        async def hold(_event: Event) -> None:  # an answer that grows needs no sign beside it
            await until(lambda: wire.signs(ANN) > 0, "the sign")

        house.gateway.registry.on("llm:before", hold)
        message = await wire.write("hello")
        await house.shows("word19")
        await bears(wire, message)
        assert wire.reacted == (["eyes"] if wire.network == "slack" else [])


@ON_ONE
async def test_a_network_has_a_say_of_its_own_and_a_reload_is_enough(wire: Any, tmp_path: Path) -> None:
    own = f"platforms: {{{wire.network}: {{reactions: false, typing: false}}}}\n"
    async with housed(wire, tmp_path / "home", settings=SHOWN + own) as house:
        message = await wire.write("what is it?")
        await house.shows("It is 42.")
        assert (wire.reactions.get(message, []), wire.signs(ANN)) == ([], 0)


async def test_where_a_right_is_missing_it_is_said_once_and_not_tried_again(wire: Any, tmp_path: Path) -> None:
    tries = refuse(wire)
    async with housed(wire, tmp_path / "home", settings=SHOWN) as house:
        for number in range(1, 4):
            await wire.mention("and you?", chat=GROUP)
            await house.shows("I heard you.", number)
        await until(lambda: len(house.presence.complaints) == 1, "the complaint")
        (complaint,) = house.presence.complaints
        assert f"platforms.{wire.network}.reactions: false" in complaint
        assert tries() == 1


def refuse(wire: Any) -> Any:
    """Refuse reactions from now on; returns a function that counts the requests."""
    match wire:
        case TelegramWire():
            wire.ills["setMessageReaction"] = [TelegramRefused(400, "Bad Request: REACTION_INVALID")] * 9
            return lambda: len(wire.asked("setMessageReaction"))
        case DiscordWire():
            wire.no_reactions = True
            return lambda: sum("/reactions/" in path for _, path, _ in wire.calls)
        case SlackWire():
            wire.ills["reactions.add"] = [Refused("missing_scope", needed="reactions:write", provided="chat:write")] * 9
            return lambda: len(wire.asked("reactions.add"))
    raise AssertionError(wire)


async def test_a_network_that_wants_a_pause_has_it_and_no_answer_waits(wire: Any, tmp_path: Path) -> None:
    tries = slow_down(wire)
    async with housed(wire, tmp_path / "home", settings=SHOWN) as house:
        began = monotonic()
        message = await wire.write("what is it?")
        await until(lambda: tries() == 1, "a try")
        await house.shows("It is 42.")
        assert (tries(), wire.reactions.get(message, [])) == (1, []), "the answer came meanwhile"
        await bears(wire, message, DONE)
        assert monotonic() - began > PAUSE
        assert tries() <= 4, "each state once at most"
        assert house.presence.up
        assert not house.presence.complaints, "it is not a right that is missing"


def slow_down(wire: Any) -> Any:
    """Refuse one reaction, with a time to wait; returns a function that counts the requests."""
    match wire:
        case TelegramWire():
            wire.ills["setMessageReaction"] = [TelegramRefused(429, "Too Many Requests", retry_after=PAUSE)]
            return lambda: len(wire.asked("setMessageReaction"))
        case DiscordWire():
            said = {"message": "You are being rate limited.", "retry_after": PAUSE, "global": False}
            wire.ills.append(("/reactions/", DiscordRefused(429, 0, "", said)))
            return lambda: sum("/reactions/" in path for _, path, _ in wire.calls)
        case SlackWire():
            wire.ills["reactions.add"] = [Refused("ratelimited", status=429, retry_after=PAUSE)]
            return lambda: len(wire.asked("reactions.add"))
    raise AssertionError(wire)


@ON_ONE
@pytest.mark.timeout(300)
async def test_many_messages_cost_few_calls_and_no_answer_waits_for_them(wire: Any, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=SHOWN):
        messages = [await wire.write(f"and you, {number}?") for number in range(30)]
        await until(lambda: any("I heard you." in one.text for one in wire.shown), "an answer")
        assert len(wire.reacted) < len(messages), "the reactions come behind"
        await bears(wire, messages[-1], DONE, limit=ALL_CHANGES)


@ON_ONE
async def test_what_waits_for_its_person_is_seen_and_no_more(wire: Any, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=SHOWN) as house:
        gate = anyio.Event()

        async def hold(_event: Event) -> None:
            await gate.wait()

        house.gateway.registry.on("llm:before", hold)
        message = await wire.write("hello")
        await bears(wire, message, WORKING)
        await wire.write("/stop")
        await bears(wire, message)
        gate.set()


async def test_the_next_life_changes_what_an_earlier_one_has_left(wire: Any, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW, settings=SHOWN):
        message = await wire.write("hello")
        await bears(wire, message, WORKING)
    async with housed(wire, tmp_path / "home", settings=SHOWN):
        await bears(wire, message, DONE)
