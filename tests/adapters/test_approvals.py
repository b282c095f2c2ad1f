"""Who presses where: nobody runs a tool but by the yes of an approver, with Slack's real library.

Ann owns the gateway, Ben is a user, and a stranger may speak because everybody may in the group, or was let in by a
code. Each asks for the same command, which says that it ran in its answer.
"""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER, Shown, Wire
from tests.adapters.slack_wire import CHANNEL, SlackWire
from tests.spine import until

RUN: dict[str, Any] = {"tool_calls": [{"name": "shell", "args": {"command": "echo it ran; id -u"}}]}
SCRIPT: tuple[dict[str, Any], ...] = (
    {"user": "do it", "answers": [RUN, {"text": "Did."}]},
    *({"text": "I heard you."},) * 20,
)
OPENED = f", chats: {{slack: [{CHANNEL}]}}"
NOTE = "An approver was notified"


@pytest.fixture
async def wire() -> AsyncIterator[SlackWire]:
    wire = SlackWire()
    async with wire.serving():
        yield wire


def settings(wire: Wire, more: str = "") -> str:
    owners = f"owners: {{{wire.network}: ['{wire.known_as(ANN)}']}}"
    return f"tools: {{shell: ask}}\naccess: {{{owners}, tools: {{user: [shell], guest: [shell]}}{more}}}\n"


async def question_for(house: House, chat: str = ANN) -> Shown:
    """The question, once it is shown there with its buttons."""
    await until(lambda: any(one.buttons for one in house.wire.shown), "the question")
    (question,) = [one for one in house.wire.shown if one.buttons]
    assert question.chat == chat, house.wire.shown
    return question


def ran(house: House) -> list[Any]:
    return [one["result"] for one in house.told("tool:after") if one["result"]]


async def is_refused(house: House, question: Shown, by: str) -> None:
    """A press that changes nothing, however they came by the button."""
    answer = f"user {house.wire.known_as(ANN)}"
    count = len(house.with_text(answer))
    await house.wire.press(question, "Yes", by=by)
    await house.wire.write("/whoami", by=ANN)
    await house.shows(answer, count + 1)  # once that is answered, so is the press
    assert question.buttons
    assert not ran(house)


@pytest.mark.row("T18")
@pytest.mark.parametrize("chat", [BEN, GROUP])
async def test_what_a_user_wants_is_for_the_owner_to_allow_and_nobody_else(
    wire: Wire, tmp_path: Path, chat: str
) -> None:
    async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings(wire)) as house:
        await (wire.write("do it", by=BEN) if chat == BEN else wire.mention("do it", by=BEN))
        question = await question_for(house)
        assert "echo it ran; id -u" in question.text
        assert wire.known_as(BEN) in question.text
        assert set(question.buttons) == {"Yes", "No"}
        await house.shows(NOTE)
        assert house.with_text(NOTE)[0].chat == chat
        for text in ("/approve", "/approve always"):
            await wire.write(text, by=BEN)
        await is_refused(house, question, BEN)
        await is_refused(house, question, STRANGER)
        late = dataclasses.replace(question, buttons=dict(question.buttons))
        await wire.press(question, "Yes", by=ANN)
        await house.shows("Did.")
        assert house.with_text("Did.")[0].chat == chat
        assert len(ran(house)) == 1
        await until(lambda: not question.buttons and "Allowed by" in question.text, "the end of the question")
        assert wire.known_as(ANN) in question.text
        before = len(wire.shown)
        await wire.press(late, "Yes", by=ANN)
        await wire.write("/whoami", by=ANN)
        await until(lambda: len(wire.shown) > before, "what was asked afterwards")
        assert not house.with_text("no longer open"), "a late press is silent"
        assert len(ran(house)) == 1


@pytest.mark.row("T18")
async def test_who_may_speak_because_everybody_may_runs_nothing(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings(wire, OPENED)) as house:
        await wire.mention("do it", by=STRANGER)
        question = await question_for(house)
        await is_refused(house, question, STRANGER)
        await is_refused(house, question, BEN)
        await wire.press(question, "No", by=ANN)
        await house.shows("Did.")
        assert not ran(house)


@pytest.mark.row("T18")
async def test_who_was_let_in_by_a_code_runs_nothing(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings(wire)) as house:
        await wire.write("hello", by=STRANGER)
        (told,) = await house.shows("pairing code")
        await wire.write(f"/pairing approve {told.text.split('code is ')[1][:8]}")
        await house.shows("You can use this bot now")
        await wire.write("do it", by=STRANGER)
        question = await question_for(house)
        assert question.chat == ANN
        await is_refused(house, question, STRANGER)
        await wire.press(question, "No", by=ANN)
        await house.shows("Did.")
        assert not ran(house)
        await until(lambda: not question.buttons and "Refused by" in question.text, "the end of the question")
