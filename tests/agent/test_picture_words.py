"""Another model says what pictures show, once, for an agent whose own model is shown none."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.media import keep_tool_picture
from gateway.agent.models.script import ScriptModel, script
from gateway.agent.ports import IgnoredUsage, TurnResult
from gateway.events import Deny
from gateway.messages.steps import LlmStep
from gateway.messages.transcript import Entry, Usage
from tests.agent.stage import Stage
from tests.agent.test_pictures import DRAW, NoReader, draw, found

BARN = {"text": "A red barn.", "usage": {"input_tokens": 70, "output_tokens": 5}}
SAID = "[you are not shown what is pictured; script says of it:]\nA red barn.\n[end of what script says]"


def seen(picture: Any) -> Entry:
    return Entry("user", "what is it?", parts=(picture,))


async def ask(stage: Stage, eyes: ScriptModel, entry: Entry, *answers: Any, **ports: Any) -> TurnResult:
    agent = stage.agent(*(answers or ("A barn.",)), tools=[draw], vision=eyes)
    return await stage.answer(agent, entry, **ports)


async def test_the_model_gets_words_and_the_other_one_the_picture(stage: Stage, tmp_path: Path) -> None:
    eyes, picture = script(BARN), found(tmp_path / "a.jpg")
    result = await ask(stage, eyes, seen(picture))
    assert [one.messages for one in eyes.requests] == [(seen(picture),)]
    assert stage.sent().messages == (Entry("user", f"what is it?\n{SAID}"),)
    assert result.entries == (Entry("user", f"what is it?\n{SAID}"), Entry("assistant", "A barn."))
    assert (result.usage.input_tokens, result.usage.calls) == (70, 2)


async def test_a_turn_that_is_run_again_does_not_ask_again_and_its_cost_stays_in_the_sum(
    stage: Stage, tmp_path: Path
) -> None:
    entry = seen(found(tmp_path / "a.jpg"))
    first = await ask(stage, script(BARN), entry)
    (step,) = [one for one in stage.steps if isinstance(one, LlmStep) and "/" in one.turn_id]
    assert step.usage == Usage(70, 5, calls=1, model="script")
    blind = script({"error": {"kind": "network"}})
    again = await ask(stage, blind, entry, steps=(step,), resumed=True)
    assert (again.entries, again.usage, blind.requests) == (first.entries, first.usage, [])


async def test_what_a_tool_draws_is_described_too_and_recorded_with_its_result(stage: Stage, tmp_path: Path) -> None:
    eyes, keep = script(BARN), partial(keep_tool_picture, tmp_path, NoReader())
    result = await ask(stage, eyes, Entry("user", "draw"), DRAW, "done", keep_picture=keep)
    (entry,) = [one for one in result.entries if one.role == "tool"]
    assert entry.content.startswith("drawn: [a picture (image/png, ")
    assert entry.content.endswith(SAID)
    assert not entry.parts
    blind = script({"error": {"kind": "network"}})
    again = await ask(stage, blind, Entry("user", "draw"), DRAW, "done", steps=tuple(stage.steps), resumed=True)
    assert [one for one in again.entries if one.role == "tool"] == [entry]
    assert not blind.requests


async def test_who_withholds_a_picture_withholds_it_from_both(stage: Stage, tmp_path: Path) -> None:
    stage.on("message:add")(lambda event: Deny("not this") if event["message"].get("parts") else None)
    eyes = script(BARN)
    await ask(stage, eyes, seen(found(tmp_path / "a.jpg")))
    assert (eyes.requests, stage.sent().messages) == ([], (Entry("user", "not this"),))


class Spent(IgnoredUsage):
    """A budget that refuses every call."""

    async def ask(self, model: str, tokens: int) -> str:
        return "your budget for today is used up" if tokens > 1000 else ""


@pytest.mark.parametrize(
    ("answer", "usage", "why"),
    [
        ({"error": {"kind": "network", "message": "not reached"}}, IgnoredUsage(), "not reached"),
        ({"text": "  "}, IgnoredUsage(), "it gave an empty answer"),
        (BARN, Spent(), "your budget for today is used up"),
    ],
)
async def test_where_nobody_can_say_what_is_pictured_the_reason_stands_there(
    stage: Stage, tmp_path: Path, answer: Any, usage: Any, why: str
) -> None:
    result = await ask(stage, script(answer), seen(found(tmp_path / "a.jpg")), usage=usage)
    said = f"what is it?\n[you are not shown what is pictured, and script could not say it: {why}]"
    assert (result.reply, stage.sent().messages) == ("A barn.", (Entry("user", said),))


async def test_pictures_of_earlier_turns_are_not_shown_either(stage: Stage, tmp_path: Path) -> None:
    history = (seen(found(tmp_path / "a.jpg")), Entry("assistant", "A barn."))
    await stage.play(stage.agent("Red.", vision=script()), "which colour?", history)
    assert [one.parts for one in stage.sent().messages] == [(), (), ()]
