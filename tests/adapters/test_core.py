"""What holds whichever network a message came by, shown once, on the page's wire.

What takes a group, a stranger, or an author who takes back what they said is in `test_core_in_groups.py`. What an
adapter can break is tried on each network, by `gateway.testing.networks`.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.events import Event
from gateway.messages.parts import Location, Poll
from gateway.records import subjects
from gateway.testing.live_gateway import until
from gateway.testing.networks.house import SCRIPT, House, housed
from gateway.testing.networks.suite import ASKS, may_ask
from gateway.testing.networks.wire import BEN, Wire
from tests.adapters.wires import WIRES

SLOW = {"user": "hello", "chunks": ["It ", "took ", "long."], "delay": "60s"}  # until somebody says stop


@pytest.fixture
async def wire(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Wire]:
    wire = WIRES[getattr(request, "param", "web")](tmp_path / "home")
    async with wire.serving():
        yield wire


async def count_inbound(house: House) -> int:
    """How much came in in the conversation of the first turn, and is there."""
    subject = subjects.session_subject_of("in", house.told("agent:start")[0]["session_key"])
    return len(await house.gateway.engine.read(subject, 0, 10))


def list_texts(house: House) -> list[dict[str, Any]]:
    """List the received texts, without commands."""
    return [one for one in house.told("message:received") if not one["text"].startswith("/")]


async def test_an_edit_of_what_is_being_answered_begins_the_answer_again(wire: Wire, tmp_path: Path) -> None:
    """Where `sessions.busy` is interrupt: neither the chat nor the model keeps anything of what was said wrongly."""
    slow = {"user": "what was", "chunks": ["It ", "was ", "41."], "delay": "60s"}
    async with housed(wire, tmp_path / "home", slow, *SCRIPT, settings="sessions: {busy: interrupt}\n") as house:
        message = await wire.write("what was it?")
        await until(lambda: bool(house.told("llm:before")), "the call of the model")
        await wire.edit(message, "what is it?")
        await house.shows("It is 42.")
        first, second = await house.hears("message:received", 2)
        assert (second["text"], second["text_before"]) == ("what is it?", "what was it?")
        assert (first["text_before"], second["message_id"]) == ("", first["message_id"])
        assert "what was it" not in str(house.told("llm:before")[-1]["messages"])
        assert not house.with_text("It was")


async def test_an_edit_of_what_waits_changes_it(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW, *SCRIPT) as house:
        await wire.write("hello")
        await until(lambda: bool(house.told("agent:start")), "the turn")
        message = await wire.write("what was it?")
        for number in range(2, 4):

            async def is_there(count: int = number) -> bool:
                return await count_inbound(house) == count

            await until(is_there, f"message {number}")
            if number == 2:
                await wire.edit(message, "what is it?")
        await wire.write("/stop")
        await house.shows("It is 42.")
        _, second = list_texts(house)
        assert (second["text"], second["text_before"]) == ("what is it?", "what was it?")
        assert not house.with_text("I heard you.")


@pytest.mark.row("T34")
async def test_what_somebody_writes_beyond_their_pace_waits_and_they_are_told(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings="access: {rate: 2}\n") as house:
        for count in (1, 2):
            await wire.write("what is it?")
            await house.shows("It is 42.", count)
        for _ in range(3):
            await wire.write("what is it?")
        await house.shows("reached the rate limit: your last message waits")
        assert await count_inbound(house) == 5
        await wire.write("what is it?", by=BEN)
        await house.shows("It is 42.", 3)
        assert len(house.told("message:received")) == 3


async def test_a_button_can_allow_for_longer_than_once(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", *ASKS, settings=may_ask(wire)) as house:
        await wire.write("do it")
        await until(lambda: any(one.buttons for one in wire.shown), "the buttons")
        (question,) = [one for one in wire.shown if one.buttons]
        await wire.press(question, "For this session")
        await house.shows("Did.")
        await wire.write("do it")
        await until(lambda: len(house.with_text("Did.")) == 2, "the second time, without a question")


async def test_nothing_of_an_answer_is_shown_before_who_may_still_change_it(wire: Wire, tmp_path: Path) -> None:
    script = {"chunks": ["It is ", "secret, ", "I fear."], "delay": "300ms"}
    async with housed(wire, tmp_path / "home", script) as house:
        shown_before: list[str] = []

        def hide(event: Event) -> None:
            shown_before.extend(one.text for one in wire.shown)
            event["response_full"] = event["response_full"].replace("secret", "hidden")

        house.gateway.registry.on("agent:end", hide)
        await wire.write("hello")
        await house.shows("It is hidden, I fear.")
        assert shown_before == []


@pytest.mark.parametrize("wire", ["web", "telegram"], indirect=True)
async def test_the_agent_sends_a_poll_and_a_place_where_the_network_has_them(wire: Wire, tmp_path: Path) -> None:
    """Elsewhere it is offered no tool for that, and says it in words."""
    calls = (
        {"name": "send_poll", "args": {"question": "Shall we?", "options": ["yes", "no"]}},
        {"name": "send_place", "args": {"latitude": 52.5, "longitude": 13.25, "title": "Zoo"}},
    )
    script = {"user": "lunch", "answers": [*({"tool_calls": [one]} for one in calls), {"text": "Done."}]}
    async with housed(wire, tmp_path / "home", script) as house:
        await wire.write("lunch?")
        await house.shows("Done.")
        after = await house.hears("tool:after", 2)
        given = [kind in house.native_parts for kind in (Poll, Location)]
        assert [one["result"] == "It is being sent." for one in after] == given
        offered = {one["name"] for one in house.told("llm:before")[0]["tools"]}
        assert [name in offered for name in ("send_poll", "send_place")] == given
        await until(lambda: len(wire.shown) == 1 + sum(given), "what was sent")
        assert [len(house.with_text(words)) for words in ("Shall we?", "Zoo")] == [int(one) for one in given]
