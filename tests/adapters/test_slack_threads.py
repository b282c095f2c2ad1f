"""Threads in Slack's view of assistants: their suggestions, their titles, and the sign of work."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.testing.networks.house import housed
from gateway.testing.networks.wire import ANN, STRANGER
from tests.adapters.slack_wire import SlackWire
from tests.spine import until

SLOW: dict[str, Any] = {"chunks": [f"word{number} " for number in range(6)], "delay": "300ms"}
PROMPTS = "platforms: {slack: {prompts: ['What is new?', 'What can you do?']}}\n"


@pytest.fixture
async def wire() -> AsyncIterator[SlackWire]:
    wire = SlackWire()
    async with wire.serving():
        yield wire


async def test_a_thread_is_offered_prompts_and_named_and_says_that_somebody_is_at_work(
    wire: SlackWire, tmp_path: Path
) -> None:
    async with housed(wire, tmp_path / "home", SLOW, {"text": "More."}, settings=PROMPTS) as house:
        thread = wire.open_thread()
        about = wire.threads[thread]
        await until(lambda: "prompts" in about, "what may be asked")
        assert [one["message"] for one in about["prompts"]] == ["What is new?", "What can you do?"]
        await wire.write("tell   me\nall about it", thread=thread)
        await until(lambda: about.get("status") == "is working on it...", "the sign")
        await until(lambda: about.get("title") == "tell me all about it", "the title")
        await house.hears("message:sent")
        await until(lambda: about["status"] == "", "the end of the sign")
        assert len(wire.asked("chat.startStream")) == 1
        await wire.write("and more", thread=thread)
        await house.hears("message:sent", 2)
        assert about["title"] == "tell me all about it"


async def test_whoever_opens_the_app_is_offered_prompts_where_they_write(wire: SlackWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", {"text": "Yes."}, settings=PROMPTS) as house:
        theirs, home, ours = wire.open_app(STRANGER), wire.open_app(tab="home"), wire.open_app()
        await until(lambda: "prompts" in ours, "what may be asked")
        await wire.write("hello")
        await house.shows("Yes.")
        assert home is ours
        assert theirs == {}
        asked = wire.asked("assistant.threads.setSuggestedPrompts")
        assert len(asked) == 1, "the page of the app is not a place to write"
        assert "thread_ts" not in asked[0], "with one Slack passes over it there"


async def test_strangers_are_offered_nothing(wire: SlackWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", {"text": "Yes."}, settings=PROMPTS) as house:
        theirs, ours = wire.open_thread(STRANGER), wire.open_thread(ANN)
        await until(lambda: "prompts" in wire.threads[ours], "what may be asked")
        await wire.write("hello", by=STRANGER, thread=theirs)
        await wire.write("hello", thread=ours)
        await house.shows("Yes.")
        assert wire.threads[theirs] == {}


async def test_an_app_without_that_view_is_asked_once(wire: SlackWire, tmp_path: Path) -> None:
    wire.has_threads = False
    async with housed(wire, tmp_path / "home", *[SLOW] * 3) as house:
        thread = await wire.write("hello")
        await house.hears("message:sent")
        assert not wire.asked("assistant.threads.setStatus"), "that is not a thread"
        for count in (2, 3):
            await wire.write("hello again", thread=thread)
            await house.hears("message:sent", count)
        assert len(wire.asked("assistant.threads.setStatus")) == 1
        assert house.presence.up


async def test_the_sign_can_be_left_out(wire: SlackWire, tmp_path: Path) -> None:
    settings = "platforms: {slack: {typing: false}}\n"
    async with housed(wire, tmp_path / "home", SLOW, settings=settings) as house:
        thread = wire.open_thread()
        await wire.write("hello", thread=thread)
        await house.hears("message:sent")
        assert "status" not in wire.threads[thread]
