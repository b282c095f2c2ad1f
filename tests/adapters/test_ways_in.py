"""One gate for every way in: of a stranger nothing is written and nothing told but the denial, by whichever way.

What the networks know as ways in stands in one table, and each is gone by a stranger and by somebody who may.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from gateway.hooks import End
from gateway.messages.message import Address, Message
from gateway.records import records
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER, Shown, Wire
from tests.adapters.wires import WIRES
from tests.spine import until

NETWORKS = ("telegram", "discord", "slack")
WORD = "kingfisher"  # said by whoever goes the way, and by nobody else
ASKS = {"tool_calls": [{"name": "shell", "args": {"command": "echo x"}}]}
SCRIPT: tuple[dict[str, Any], ...] = (
    {"user": "do it", "answers": [ASKS, {"text": "Did."}]},
    {"user": "what is", "answers": [{"text": "It is 42."}]},
    *({"text": "I heard you."},) * 20,
)
SETTINGS = "access: {strangers: ignore, rate: 100, tools: {user: all}}\ntools: {shell: ask, approvers: [asker]}\n"

Go: TypeAlias = Callable[[Wire, str, Shown], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Way:
    """A way in for a person, by a message of ours in the group; and the event of an authorized one, if any.

    `denials` is the number of refusals of a stranger on that way, `by` a person who may use it.
    """

    go: Go
    heard: str = "message:received"
    denials: int = 1
    by: str = BEN


async def message(wire: Wire, by: str, _ours: Shown) -> None:
    await wire.write(WORD, by=by)


async def edit(wire: Wire, by: str, _ours: Shown) -> None:
    await wire.edit(await wire.write("hello", by=by), WORD, by=by)


async def reaction(wire: Wire, by: str, _ours: Shown) -> None:
    await wire.react(await wire.write("hello", by=by), "👍", by=by)


async def button(wire: Wire, by: str, ours: Shown) -> None:
    await wire.press(ours, "Yes", by=by)


async def command(wire: Wire, by: str, _ours: Shown) -> None:
    await wire.write(f"/title {WORD}", by=by)


async def command_in_the_group(wire: Wire, by: str, _ours: Shown) -> None:
    await wire.write(f"/title {WORD}", by=by, chat=GROUP)


async def urgent_command(wire: Wire, by: str, _ours: Shown) -> None:
    await wire.write(f"/queue {WORD}", by=by)


async def mention(wire: Wire, by: str, _ours: Shown) -> None:
    await wire.mention(WORD, by=by)


async def reply_in_the_group(wire: Wire, by: str, ours: Shown) -> None:
    await wire.write(WORD, by=by, chat=GROUP, reply_to=ours.id)


async def file(wire: Wire, by: str, _ours: Shown) -> None:
    await wire.upload(("letter.pdf", b"a letter"), caption=WORD, by=by)


async def album(wire: Wire, by: str, _ours: Shown) -> None:
    await wire.upload(("a.jpg", b"a"), ("b.jpg", b"b"), caption=WORD, by=by)


async def forwarded(wire: Wire, by: str, _ours: Shown) -> None:
    await wire.forward(WORD, by=by)


async def joining(wire: Wire, by: str, _ours: Shown) -> None:
    await wire.join(WORD, by=by)


async def another_bot(wire: Wire, _by: str, _ours: Shown) -> None:
    await wire.by_a_bot(WORD)


WAYS = {
    "message": Way(message),
    "edit": Way(edit, denials=2),
    "reaction": Way(reaction, "reaction:added", denials=2),
    "button": Way(button, "agent:end", by=ANN),
    "command": Way(command),
    "command in the group": Way(command_in_the_group),
    "urgent command": Way(urgent_command),
    "mention": Way(mention),
    "reply in the group": Way(reply_in_the_group),
    "file": Way(file),
    "album": Way(album),
    "forwarded": Way(forwarded),
    "joining": Way(joining, "", denials=0),
    "another bot": Way(another_bot, "", denials=0),
}


@pytest.fixture(params=NETWORKS)
async def wire(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Wire]:
    wire = WIRES[request.param](tmp_path / "home")
    async with wire.serving():
        yield wire


async def written(house: House) -> list[str]:
    """Everything that is in the journal, in words."""
    found = await house.gateway.engine.read(">", limit=10_000)
    return [f"{record.subject} {records.decode(record.data)!r}" for record in found]


@asynccontextmanager
async def opened(wire: Wire, root: Path) -> AsyncIterator[tuple[House, Shown, Shown]]:
    """A gateway, and two messages of ours in the group: an answer to Ann, and a question with buttons for her."""
    async with housed(wire, root, *SCRIPT, settings=SETTINGS) as house:
        await wire.mention("what is it?")
        (answer,) = await house.shows("It is 42.")
        await wire.mention("do it")
        await until(lambda: any(one.buttons for one in wire.shown), "the buttons")
        (question,) = [one for one in wire.shown if one.buttons]
        yield house, answer, question


@pytest.mark.row("T16", "T17")
async def test_of_a_stranger_nothing_is_written_and_nothing_told_but_the_denial(wire: Wire, tmp_path: Path) -> None:
    stranger = wire.known_as(STRANGER)
    async with opened(wire, tmp_path / "home") as (house, answer, question):
        before, expected = len(wire.shown), 0
        for name, way in WAYS.items():
            await way.go(wire, STRANGER, question if way.go is button else answer)
            expected += way.denials
            await until(lambda: len(house.told("access:denied")) >= expected, f"the denial of: {name}")  # noqa: B023
            assert len(house.told("access:denied")) == expected, name
        await wire.write("what is it?", by=BEN)
        await until(lambda: any(one.chat == BEN for one in wire.shown), "the answer to somebody else")
        assert [fields["user_id"] for fields in house.told("access:denied")] == [stranger] * expected
        assert {event for event, fields in house.events if fields.get("user_id") == stranger} == {"access:denied"}
        assert not [event for event, fields in house.events if WORD in repr(fields)]
        assert not [line for line in await written(house) if WORD in line or f"'{stranger}'" in line]
        assert not [path for path in house.gateway.home.files.rglob("*") if path.is_file()]
        assert [one.chat for one in wire.shown[before:]] == [BEN]
        assert question.buttons


@pytest.mark.row("T17")
async def test_who_may_speak_is_heard_by_each_way_that_is_one(wire: Wire, tmp_path: Path) -> None:
    def is_it(way: Way, event: str, fields: dict[str, Any]) -> bool:
        is_theirs = fields.get("user_id") == wire.known_as(way.by)
        return event == way.heard and is_theirs and WORD in fields.get("text", WORD)

    async with opened(wire, tmp_path / "home") as (house, answer, question):
        # What Ben says is heard, and then done with: no answer has to wait for the network's pace.
        ben = wire.known_as(BEN)
        house.gateway.registry.on("message:received", lambda event: End("") if event["user_id"] == ben else None)
        for name, way in WAYS.items():
            begun = len(house.events)
            await way.go(wire, way.by, question if way.go is button else answer)
            if way.heard:
                await until(lambda: any(is_it(way, *one) for one in house.events[begun:]), name)  # noqa: B023
            assert len([one for one in house.events[begun:] if is_it(way, *one)]) == bool(way.heard), name
        heard = len([fields for _, fields in house.events if WORD in fields.get("text", "") and "message_id" in fields])
        await wire.write("what is it?", by=ANN)
        await until(lambda: any(one.chat == ANN for one in wire.shown), "the answer to something else")
        assert heard == len([way for way in WAYS.values() if way.heard == "message:received"])
        assert not house.told("access:denied")


@pytest.mark.row("T17", "T18")
async def test_who_was_let_in_as_a_user_is_a_stranger_by_each_way_into_a_group(wire: Wire, tmp_path: Path) -> None:
    async with opened(wire, tmp_path / "home") as (house, answer, question):
        pairings, who = house.gateway.access.pairings, wire.known_as(STRANGER)
        code = await pairings.invite(Message("1", Address(wire.network, who), who, "hello"))
        await pairings.approve(code, "whoever sits at the terminal")
        into_the_group = ("mention", "reply in the group", "command in the group", "button")
        for denied, name in enumerate(into_the_group, 1):
            way = WAYS[name]
            await way.go(wire, STRANGER, question if way.go is button else answer)
            await until(lambda: len(house.told("access:denied")) >= denied, f"the denial of: {name}")  # noqa: B023
        await wire.write(WORD, by=STRANGER)
        await until(lambda: any(one["user_id"] == who for one in house.told("message:received")), "the direct message")
        (heard,) = [one for one in house.told("message:received") if one["user_id"] == who]
        assert (heard["text"], heard["role"]) == (WORD, "user")
        assert len(house.told("access:denied")) == len(into_the_group)
        assert question.buttons
