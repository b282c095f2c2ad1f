"""The parts that are neither text nor file, on every chat network: data for hooks, and words for the model.

A network without such a part shows the words. Like `suite`, of which its tests are a part.
"""

import msgspec
import pytest

from gateway.events import Event
from gateway.messages.parts import Contact, Location, MessagePart, Poll, Sticker, describe_parts
from gateway.testing.networks.house import House

ZOO = Location(latitude=52.5, longitude=13.25, title="Zoo", address="Road 8")
LUNCH = Poll(question="Shall we?", options=("yes", "no"))
pytestmark = pytest.mark.anyio


async def check_incoming(house: House, part: MessagePart) -> None:
    """Send a part as a person: hooks see its data, and the model reads words for it, each once."""
    await house.wire.send(part)
    await house.shows("I heard you.")
    (received,) = await house.hears("message:received")
    assert received["parts"] == [msgspec.to_builtins(part)]
    (asked,) = await house.hears("llm:before")
    assert received["text"] == asked["messages"][-1]["content"] == describe_parts([part])


async def test_a_sticker_comes_as_what_it_is(house: House) -> None:
    await check_incoming(house, Sticker(name="waves"))


async def test_a_place_comes_as_what_it_is(house: House) -> None:
    await check_incoming(house, Location(latitude=52.5, longitude=13.25))


async def test_a_contact_comes_as_what_it_is(house: House) -> None:
    await check_incoming(house, Contact(name="Ben Oak", phone="+49301"))


async def test_a_poll_comes_as_what_it_is(house: House) -> None:
    await check_incoming(house, LUNCH)


async def test_a_poll_and_a_place_that_a_hook_sends_are_shown_once_as_the_network_can(house: House) -> None:
    """The parts are shown natively, or in words; they are sent during the turn, since a terminal may be away later."""

    async def suggest(event: Event) -> None:
        parts = msgspec.to_builtins([ZOO, LUNCH])
        asked = {"to": event["session_key"], "text": "Lunch there?", "parts": parts}
        await house.gateway.groups.turns.hook_requests("lunch", "send", asked, "")

    house.gateway.registry.on("agent:start", suggest)
    await house.wire.write("hello")
    for words in ("I heard you.", "Lunch there?", "Zoo", "52.5", "Shall we?", "yes", "no"):
        await house.shows(words)
    await house.hears("message:sent", 2)
    assert len(house.wire.shown) == 2 + len(house.native_parts)
    assert len(house.with_text("Shall we?")) == len(house.with_text("Lunch there?")) == len(house.with_text("Zoo")) == 1
