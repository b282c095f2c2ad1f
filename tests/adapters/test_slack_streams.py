"""Answers that grow in Slack's own way: begun, appended to and stopped, also by a life that did not begin them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.events import Event
from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.suite import may_ask
from gateway.testing.networks.wire import ANN, GROUP
from tests.adapters.slack_web import Refused
from tests.adapters.slack_wire import CHANNEL, SlackWire
from tests.spine import until
from tests.waits import Stopwatch

SLOW: dict[str, Any] = {"chunks": [f"word{number} " for number in range(12)], "delay": "150ms"}
WHOLE = "".join(SLOW["chunks"]).strip()
CODE = (
    "Look:\n\n```python\nprint('`@here`')\n" + "".join(f"x{number} = {number}\n" for number in range(9)) + "```\n\nso."
)


@pytest.fixture
async def wire() -> AsyncIterator[SlackWire]:
    wire = SlackWire()
    async with wire.serving():
        yield wire


def made(wire: SlackWire) -> dict[str, int]:
    """How often each of the calls that show an answer was made."""
    found: dict[str, int] = {}
    for name, _ in wire.calls:
        if name.startswith("chat."):
            found[name] = found.get(name, 0) + 1
    return found


async def answered(house: House, wire: SlackWire) -> None:
    """In a thread of the channel: one message, and nothing grows any more."""
    (sent,) = await house.hears("message:sent")
    assert sent["message_ids"] == [one.id for one in wire.shown]
    assert wire.growing == set()


async def test_an_answer_in_a_thread_is_begun_appended_to_and_stopped(wire: SlackWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW) as house:
        asked = await wire.mention("hello")
        await house.shows("word0")
        assert wire.growing
        await answered(house, wire)
        assert (wire.shown[0].text.strip(), wire.shown[0].thread) == (WHOLE, asked)
        calls = made(wire)
        assert calls.keys() == {"chat.startStream", "chat.appendStream", "chat.stopStream"}
        assert (calls["chat.startStream"], calls["chat.stopStream"]) == (1, 1)
        (begun,) = wire.asked("chat.startStream")
        assert (begun["recipient_user_id"], begun["recipient_team_id"]) == (wire.known_as(ANN), "T1")


async def test_code_and_what_calls_nobody_is_appended_as_it_comes(wire: SlackWire, tmp_path: Path) -> None:
    pieces = [CODE[at : at + 7] for at in range(0, len(CODE), 7)]
    async with housed(wire, tmp_path / "home", {"chunks": pieces, "delay": "150ms"}) as house:
        await wire.mention("code, please")
        await answered(house, wire)
        assert wire.shown[0].text == CODE
        assert made(wire)["chat.appendStream"] > 0
        assert "chat.update" not in made(wire)


async def test_who_would_be_called_together_by_what_comes_later_is_not(wire: SlackWire, tmp_path: Path) -> None:
    pieces = ["Hello `@he", "re now ", "` and ", "@chan", "nel, ", "come here"]
    async with housed(wire, tmp_path / "home", {"chunks": pieces, "delay": "400ms"}) as house:
        await wire.mention("who?")
        await answered(house, wire)
        assert wire.shown[0].text == "Hello `@here now ` and @\u2060channel, come here"
        assert made(wire)["chat.update"] > 0, "what had looked like no code was code"


async def test_what_a_link_leads_to_is_not_shown(wire: SlackWire, tmp_path: Path) -> None:
    """Streams have no word for that, and edits open no previews."""
    pieces = ["See this: ", "[here](https:", "//evil.example/?q=secret) ", "and more."]
    async with housed(wire, tmp_path / "home", {"chunks": pieces, "delay": "500ms"}) as house:
        await wire.mention("links, please")
        await answered(house, wire)
        assert wire.shown[0].text == "".join(pieces)
        assert not any("://" in one.get("markdown_text", "") for one in wire.asked("chat.appendStream"))
        assert made(wire)["chat.update"] > 0


async def test_an_answer_that_outgrows_a_message_goes_on_in_the_next(wire: SlackWire, tmp_path: Path) -> None:
    answer = "\n".join(f"This is line {number} of many." for number in range(1200))
    pieces = [answer[at : at + 3000] for at in range(0, len(answer), 3000)]
    async with housed(wire, tmp_path / "home", {"chunks": pieces, "delay": "300ms"}) as house:
        await wire.mention("all of it")
        await answered(house, wire)
        assert "\n".join(one.text for one in wire.shown) == answer
        assert len(wire.shown) > 2


@pytest.mark.parametrize("code", ["not_allowed", "channel_type_not_supported", "missing_scope", "unknown_method"])
async def test_where_slack_refuses_answers_grow_by_edits_and_it_is_not_asked_again(
    wire: SlackWire, tmp_path: Path, code: str
) -> None:
    wire.ills["chat.startStream"] = [Refused(code)]
    async with housed(wire, tmp_path / "home", SLOW, SLOW) as house:
        await wire.mention("hello")
        await house.shows("word0")
        await house.hears("message:sent")
        await wire.mention("hello again")
        await house.hears("message:sent", 2)
        assert [one.text.strip() for one in wire.shown] == [WHOLE, WHOLE]
        calls = made(wire)
        assert (calls["chat.startStream"], calls["chat.postMessage"]) == (1, 2)
        assert calls["chat.update"] > 2


async def test_too_many_beginnings_make_this_one_answer_a_message(wire: SlackWire, tmp_path: Path) -> None:
    wire.ills["chat.startStream"] = [Refused("ratelimited", status=429, retry_after=30)]
    async with housed(wire, tmp_path / "home", SLOW, SLOW) as house:
        with Stopwatch() as watch:
            await wire.mention("hello")
            await house.hears("message:sent")
        assert watch.seconds < 25, "the thirty seconds of the beginning are not waited for"
        await wire.mention("hello again")
        await house.hears("message:sent", 2)
        assert [one.text.strip() for one in wire.shown] == [WHOLE, WHOLE]
        assert made(wire)["chat.startStream"] == 2
        assert wire.growing == set()


async def test_slack_may_want_silence_while_an_answer_grows(wire: SlackWire, tmp_path: Path) -> None:
    slower = Refused("ratelimited", status=429, retry_after=0.2)
    wire.ills |= {"chat.appendStream": [slower, slower], "chat.stopStream": [slower]}
    async with housed(wire, tmp_path / "home", SLOW) as house:
        await wire.mention("hello")
        await answered(house, wire)
        assert wire.shown[0].text.strip() == WHOLE
        assert "chat.update" not in made(wire)


async def test_an_answer_that_waited_for_its_delivery_is_whole(wire: SlackWire, tmp_path: Path) -> None:
    """Its stream was ended as it stood; and Slack wants silence when the rest is to be shown."""
    async with housed(wire, tmp_path / "home", {"chunks": ["Ask ", "@bob"], "delay": "1s"}) as house:
        (network,) = [one for one in house.gateway.outbox.platforms.values() if one.transport.platform == "slack"]
        for _ in range(network.settings.senders):
            await network.calls.acquire()
        wire.ills["chat.update"] = [Refused("ratelimited", status=429, retry_after=0.1)]
        await wire.mention("whom?")
        await until(lambda: wire.growing != set(), "the beginning")
        wire.growing.clear()
        for _ in range(network.settings.senders):
            network.calls.release()
        await answered(house, wire)
        assert wire.shown[0].text == "Ask @bob"


async def test_a_message_that_slack_has_stopped_itself_is_edited(wire: SlackWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW) as house:
        await wire.mention("hello")
        await house.shows("word0")
        wire.growing.clear()
        await answered(house, wire)
        assert wire.shown[0].text.strip() == WHOLE
        assert made(wire)["chat.update"] > 0


async def test_a_message_that_somebody_deleted_is_sent_anew(wire: SlackWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW) as house:
        await wire.mention("hello")
        await house.shows("word0")
        wire.growing.clear()
        wire.messages.pop(wire.shown[0].id)
        wire.shown.clear()
        await answered(house, wire)
        assert [one.text.strip() for one in wire.shown] == [WHOLE]


async def test_a_hook_that_comes_while_an_answer_grows_has_the_last_word(wire: SlackWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW) as house:

        def hide(event: Event) -> None:
            event["text"] = "hidden"

        await wire.mention("hello")
        await house.shows("word0")
        house.gateway.registry.on("message:sending", hide)
        await answered(house, wire)
        assert [one.text for one in wire.shown] == ["hidden"]


async def test_where_a_hook_looks_at_what_is_sent_nothing_grows(wire: SlackWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW) as house:

        def hide(event: Event) -> None:
            event["text"] = "hidden"

        house.gateway.registry.on("message:sending", hide)
        await wire.mention("hello")
        await answered(house, wire)
        assert [one.text for one in wire.shown] == ["hidden"]
        assert made(wire) == {"chat.postMessage": 1}


async def test_an_answer_that_is_stopped_grows_no_more(wire: SlackWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", {**SLOW, "delay": "400ms"}) as house:
        asked = await wire.mention("hello")
        await house.shows("word2")
        await wire.write("/stop", chat=GROUP, thread=asked)
        await until(lambda: not wire.growing, "the end of the stream")
        await house.hears("message:sent", 2)
        assert not house.with_text("word11")


async def test_an_answer_that_waits_for_somebody_does_not_seem_to_grow(wire: SlackWire, tmp_path: Path) -> None:
    call = {"name": "shell", "args": {"command": "echo x"}}
    asks = {"chunks": ["Let ", "me ", "see. "], "delay": "500ms", "tool_calls": [call]}
    script = {"user": "do it", "answers": [asks, {"text": "Did."}]}
    async with housed(wire, tmp_path / "home", script, settings=may_ask(wire)) as house:
        await wire.mention("do it")
        await until(lambda: any(one.buttons for one in wire.shown), "the question")
        await until(lambda: not wire.growing, "the end of the stream")
        (question,) = [one for one in wire.shown if one.buttons]
        await wire.press(question, "Yes")
        await house.shows("Did.")
        await until(lambda: not wire.growing, "the end of the answer")


async def test_two_answers_grow_beside_each_other(wire: SlackWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW, SLOW) as house:
        first, second = await wire.mention("hello"), await wire.mention("and you?")
        await until(lambda: len(wire.growing) == 2, "two streams")
        await house.hears("message:sent", 2)
        assert {one.thread: one.text.strip() for one in wire.shown} == {first: WHOLE, second: WHOLE}
        assert wire.growing == set()


async def test_in_a_direct_message_outside_of_threads_it_grows_by_edits(wire: SlackWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW, SLOW) as house:
        await wire.write("hello")
        await house.hears("message:sent")
        assert "chat.startStream" not in made(wire)
        thread = wire.shown[0].id
        await wire.write("hello again", thread=thread)
        await house.hears("message:sent", 2)
        assert made(wire)["chat.startStream"] == 1
        assert wire.shown[1].thread == thread


async def test_the_settings_can_leave_it_to_edits(wire: SlackWire, tmp_path: Path) -> None:
    settings = "platforms: {slack: {streaming: edit}}\n"
    async with housed(wire, tmp_path / "home", SLOW, settings=settings) as house:
        await wire.mention("hello")
        await house.hears("message:sent")
        assert made(wire).keys() == {"chat.postMessage", "chat.update"}


@pytest.mark.parametrize("is_lost", [False, True])
async def test_the_next_life_ends_the_answer_in_the_same_message(
    wire: SlackWire, tmp_path: Path, is_lost: bool
) -> None:
    """The process is killed while the answer grows; `is_lost`: while nobody has told it that it was begun."""
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({**SLOW, "delay": "300ms"}, {"text": WHOLE})
        gateway.environ |= {**wire.environ, "SLACK_ALLOWED_USERS": wire.known_as(ANN)}
        await to_thread.run_sync(gateway.start)
        wire.is_mute = is_lost
        asked = await wire.mention("hello")
        await until(lambda: "word0" in "".join(one.text for one in wire.shown), "the beginning")
        if not is_lost:
            await until(lambda: made(wire).get("chat.appendStream", 0) > 1, "more of it")
        await to_thread.run_sync(gateway.kill)
        wire.is_mute = False
        (before,) = wire.shown
        assert (before.thread, wire.growing) == (asked, {before.id})
        await to_thread.run_sync(gateway.start)
        await until(lambda: not wire.growing and before.text.strip() == WHOLE, "the whole of it")
        assert wire.shown == [before]
        assert all(asked["channel"] == CHANNEL for asked in wire.asked("chat.stopStream"))
