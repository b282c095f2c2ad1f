"""The ways into the page's chat, one gate for all: a message, an edit, a file, a button, a command."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest

from gateway.adapters.page.chat import ButtonPress, PageChat, PageMessage
from gateway.errors import AdapterError
from gateway.messages.message import Receipt
from gateway.records import records
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN
from tests.adapters.page_wire import PageWire
from tests.spine import until

WORD = "kingfisher"
Go: TypeAlias = Callable[[PageChat, str], Awaitable[Receipt]]
WAYS: dict[str, Go] = {
    "message": lambda chat, who: chat.say(who, PageMessage("message-00", WORD)),
    "thread": lambda chat, who: chat.say(who, PageMessage("message-01", WORD, thread="c" + "0" * 15)),
    "edit": lambda chat, who: chat.say(who, PageMessage("message-02", WORD, edits="message-00")),
    "command": lambda chat, who: chat.say(who, PageMessage("message-03", f"/title {WORD}")),
    "urgent command": lambda chat, who: chat.say(who, PageMessage("message-04", f"/queue {WORD}")),
    "button": lambda chat, who: chat.press(who, ButtonPress("message-05", "reply", f"/deny #{WORD}")),
}


async def pieces_of(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def read_words(house: House) -> list[str]:
    found = await house.gateway.engine.read(">", limit=10_000)
    return [line for record in found if WORD in (line := repr(records.decode(record.data)))]


@pytest.mark.row("T17")
async def test_whoever_has_no_role_is_turned_away_by_every_way_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    wire: Any = PageWire(tmp_path / "home")
    async with wire.serving(), housed(wire, tmp_path / "home") as house:
        chat = PageChat(house.gateway.groups.networks.adapter_context)
        for denied, (name, go) in enumerate(WAYS.items(), 1):
            assert (await go(chat, "stranger")).decision == "stranger", name
            await house.hears("access:denied", denied)
        with pytest.raises(AdapterError, match="may not use"):
            await chat.keep_file("stranger", "file-0001", "letter.pdf", "", pieces_of(WORD.encode()))
        assert await read_words(house) == []
        assert not [path for path in house.gateway.home.files.rglob("*") if path.is_file()]
        assert not house.told("message:received")


@pytest.mark.row("T17")
async def test_who_may_speak_is_heard_by_each_and_no_longer_when_the_role_is_gone(tmp_path: Path) -> None:
    wire: Any = PageWire(tmp_path / "home")
    async with wire.serving(), housed(wire, tmp_path / "home", settings="access: {rate: 100}\n") as house:
        chat = PageChat(house.gateway.groups.networks.adapter_context)
        for name, go in WAYS.items():
            assert (await go(chat, "ben")).decision in ("queued", "settled"), name
        heard = len([name for name in WAYS if name != "button"])
        await until(lambda: len([one for one in house.told("message:received") if WORD in one["text"]]) >= heard, "all")
        await wire.write("what is it?", by=ANN)
        await wire.write("hello", by=BEN)
        await house.shows("It is 42.")
        rules = house.gateway.access.rules
        house.gateway.access.rules = msgspec.structs.replace(rules, named={})
        assert (await wire._ask(BEN, "GET", "/chat/list", {}, b""))[0] == 403
        for name, go in WAYS.items():
            assert (await go(PageChat(house.gateway.groups.networks.adapter_context), "ben")).decision == "stranger", (
                name
            )


async def test_what_another_must_allow_is_put_to_them_on_their_own_page_with_all_of_it(tmp_path: Path) -> None:
    wire: Any = PageWire(tmp_path / "home")
    wire.roles["ben"] = "owner"
    call = {"tool_calls": [{"name": "shell", "args": {"command": "echo <b>x</b> 1"}}]}
    script = ({"user": "do it", "answers": [call, {"text": "Did."}]}, *({"text": "I heard you."},) * 5)
    settings = "tools: {shell: ask}\naccess: {tools: {user: all}}\n"
    async with wire.serving(), housed(wire, tmp_path / "home", *script, settings=settings) as house:
        await wire.write("hello", by=BEN)
        await house.shows("I heard you.")
        await wire.write("do it", by=ANN)
        await until(lambda: any(one.buttons for one in wire.shown), "the buttons")
        (question,) = [one for one in wire.shown if one.buttons]
        assert (question.chat, "echo <b>x</b> 1" in question.text, "ann" in question.text) == (BEN, True, True)
        await wire.press(question, "Yes", by=ANN)  # whoever reads along decides nothing
        await wire.press(question, "Yes", by=BEN)
        (answer,) = await house.shows("Did.")
        assert answer.chat == ANN
        await until(lambda: not question.buttons, "the end of the buttons")
        assert "Allowed by ben (web ben)." in question.text
