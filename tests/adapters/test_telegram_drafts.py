"""Answers that grow as Telegram's drafts, in private chats: no message before the whole of it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.events import Event
from gateway.testing import GatewayProcess
from gateway.testing.networks.house import housed
from gateway.testing.networks.wire import ANN, GROUP
from tests.adapters.telegram_wire import Refused, TelegramWire
from tests.spine import until

SLOW: dict[str, Any] = {"chunks": [f"word{number} " for number in range(12)], "delay": "150ms"}
WHOLE = "".join(SLOW["chunks"]).strip()


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


def counted(wire: TelegramWire) -> tuple[int, int, int]:
    """How many drafts, messages and edits there were."""
    found = [len(wire.asked(name)) for name in ("sendMessageDraft", "sendMessage", "editMessageText")]
    return found[0], found[1], found[2]


async def test_an_answer_is_a_draft_until_it_is_whole(wire: TelegramWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW, SLOW) as house:
        await wire.write("hello")
        await house.shows("word0")
        assert wire.shown[0].is_draft
        (sent,) = await house.hears("message:sent")
        assert [(one.id, one.text, one.is_draft) for one in wire.shown] == [(sent["message_ids"][0], WHOLE, False)]
        drafts, messages, edits = counted(wire)
        assert (drafts > 1, messages, edits) == (True, 1, 0)
        assert len({one["draft_id"] for one in wire.asked("sendMessageDraft")}) == 1
        await wire.write("hello again")
        await house.hears("message:sent", 2)
        assert len({one["draft_id"] for one in wire.asked("sendMessageDraft")}) == 2


async def test_what_is_whole_of_a_long_answer_is_sent_and_the_rest_is_a_draft(
    wire: TelegramWire, tmp_path: Path
) -> None:
    answer = "\n".join(f"This is **line** {number} of many." for number in range(400))
    pieces = [answer[at : at + 1000] for at in range(0, len(answer), 1000)]
    async with housed(wire, tmp_path / "home", {"chunks": pieces, "delay": "200ms"}) as house:
        await wire.write("all of it")
        await until(lambda: [one.is_draft for one in wire.shown] == [False, True], "a message, and a draft")
        (sent,) = await house.hears("message:sent")
        assert sent["message_ids"] == [one.id for one in wire.shown]
        assert "\n".join(one.text for one in wire.shown) == answer.replace("**", "")
        assert len(wire.asked("editMessageText")) <= len(wire.shown), "what is whole is not shown again and again"


async def test_where_the_server_has_no_drafts_answers_grow_by_edits_and_it_is_not_asked_again(
    wire: TelegramWire, tmp_path: Path
) -> None:
    wire.has_drafts = False
    async with housed(wire, tmp_path / "home", SLOW, SLOW) as house:
        await wire.write("hello")
        await house.shows("word0")
        await house.hears("message:sent")
        await wire.write("hello again")
        await house.hears("message:sent", 2)
        drafts, messages, edits = counted(wire)
        assert (drafts, messages, edits > 2) == (1, 2, True)
        assert [one.text for one in wire.shown] == [WHOLE, WHOLE]
        assert house.presence.up


async def test_a_chat_that_refuses_drafts_is_not_asked_again_and_others_are(wire: TelegramWire, tmp_path: Path) -> None:
    wire.ills["sendMessageDraft"] = [Refused(400, "Bad Request: TEXTDRAFT_PEER_INVALID")]
    async with housed(wire, tmp_path / "home", SLOW, SLOW, SLOW) as house:
        await wire.write("hello")
        await house.hears("message:sent")
        await wire.write("hello again")
        await house.hears("message:sent", 2)
        assert len(wire.asked("sendMessageDraft")) == 1
        await wire.write("hello", by="1002")
        await house.hears("message:sent", 3)
        assert len(wire.asked("sendMessageDraft")) > 1


async def test_telegram_may_want_silence_while_an_answer_grows(wire: TelegramWire, tmp_path: Path) -> None:
    wire.ills["sendMessageDraft"] = [Refused(429, "Too Many Requests: retry after 60", retry_after=60)]
    async with housed(wire, tmp_path / "home", SLOW) as house:
        await wire.write("hello")
        await house.hears("message:sent")
        assert [one.text for one in wire.shown] == [WHOLE]
        assert counted(wire) == (1, 1, 0)


async def test_in_groups_and_where_the_settings_say_so_it_grows_by_edits(wire: TelegramWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW) as house:
        await wire.mention("hello", chat=GROUP)
        await house.hears("message:sent")
        drafts, messages, edits = counted(wire)
        assert (drafts, messages, edits > 0) == (0, 1, True)


async def test_the_settings_can_leave_it_to_edits(wire: TelegramWire, tmp_path: Path) -> None:
    settings = "platforms: {telegram: {streaming: edit}}\n"
    async with housed(wire, tmp_path / "home", SLOW, settings=settings) as house:
        await wire.write("hello")
        await house.hears("message:sent")
        drafts, messages, edits = counted(wire)
        assert (drafts, messages, edits > 0) == (0, 1, True)


async def test_where_a_hook_looks_at_what_is_sent_there_is_no_draft(wire: TelegramWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW) as house:

        def hide(event: Event) -> None:
            event["text"] = "hidden"

        house.gateway.registry.on("message:sending", hide)
        await wire.write("hello")
        await house.hears("message:sent")
        assert ([one.text for one in wire.shown], counted(wire)) == (["hidden"], (0, 1, 0))


async def test_an_answer_that_is_stopped_is_sent_as_far_as_it_came(wire: TelegramWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", {**SLOW, "delay": "400ms"}) as house:
        await wire.write("hello")
        await house.shows("word2")
        await wire.write("/stop")
        await house.hears("message:sent", 2)
        drafts = len(wire.asked("sendMessageDraft"))
        assert not any(one.is_draft or "word11" in one.text for one in wire.shown)
        await wire.write("/whoami")
        await house.shows("user 1001")
        assert len(wire.asked("sendMessageDraft")) == drafts


async def test_the_next_life_sends_the_answer_once(wire: TelegramWire, tmp_path: Path) -> None:
    """The process is killed while a draft is shown, of which the next one knows nothing."""
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({**SLOW, "delay": "300ms"}, {"text": WHOLE})
        gateway.environ |= {**wire.environ, "TELEGRAM_ALLOWED_USERS": ANN}
        await to_thread.run_sync(gateway.start)
        await wire.write("hello")
        await until(lambda: any("word1" in one.text for one in wire.shown), "the beginning")
        await to_thread.run_sync(gateway.kill)
        assert [one.is_draft for one in wire.shown] == [True]
        await to_thread.run_sync(gateway.start)
        await until(lambda: any(not one.is_draft for one in wire.shown), "the answer")
        assert [(one.text, one.is_draft) for one in wire.shown] == [(WHOLE, False)]
