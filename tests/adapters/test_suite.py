"""What holds for every chat network, shown on each with its real library against a server on loopback."""

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

from tests.adapters.discord_wire import DiscordWire
from tests.adapters.house import House, housed
from tests.adapters.telegram_wire import TelegramWire
from tests.adapters.wire import ANN, BEN, GROUP, STRANGER, Wire
from tests.spine import until

WIRES: dict[str, Callable[[], Wire]] = {"telegram": TelegramWire, "discord": DiscordWire}
LETTER = b"%PDF-1.4 a letter"


@pytest.fixture(params=WIRES)
async def wire(request: pytest.FixtureRequest) -> AsyncIterator[Wire]:
    wire = WIRES[request.param]()
    async with wire.serving():
        yield wire


@pytest.fixture
async def house(wire: Wire, tmp_path: Path) -> AsyncIterator[House]:
    async with housed(wire, tmp_path / "home") as house:
        yield house


async def test_a_message_in_is_received_once_and_its_reply_is_sent_once(house: House) -> None:
    await house.wire.write("what is it?")
    (shown,) = await house.shows("It is 42.")
    assert shown.chat == ANN
    (received,) = await house.hears("message:received")
    assert (received["user_id"], received["text"]) == (house.wire.known_as(ANN), "what is it?")
    (sent,) = await house.hears("message:sent")
    assert sent["message_ids"] == [shown.id]
    assert house.presence.last_event
    assert house.presence.last_send


async def test_what_the_network_delivers_twice_is_answered_once(house: House) -> None:
    await house.wire.write("what is it?")
    await house.shows("It is 42.")
    await house.wire.again()
    await house.wire.write("and you?")
    await house.shows("I heard you.")
    assert len(await house.shows("It is 42.")) == 1


async def test_a_stranger_is_denied_by_every_way_in(house: House) -> None:
    wire = house.wire
    message = await wire.write("hello", by=STRANGER)
    await wire.write("/status", by=STRANGER)
    await wire.edit(message, "hello!", by=STRANGER)
    await wire.upload(("letter.pdf", LETTER), by=STRANGER)
    await wire.react(message, "👍", by=STRANGER)
    await wire.mention("hello", by=STRANGER)
    await until(lambda: len(house.told("access:denied")) == 6, "six denials")
    await wire.write("what is it?")
    await house.shows("It is 42.")
    assert {one.chat for one in wire.shown} == {ANN}
    assert len(house.told("message:received")) == 1
    assert not list(house.gateway.home.files.rglob("*.pdf"))


async def test_an_edit_comes_as_an_edit(house: House) -> None:
    message = await house.wire.write("what was it?")
    await house.shows("I heard you.")
    await house.wire.edit(message, "what is it?")
    await house.shows("It is 42.")


async def test_commands_are_commands(house: House) -> None:
    await house.wire.write("/whoami")
    (shown,) = await house.shows(f"user {house.wire.known_as(ANN)}")
    assert house.wire.network in shown.text


async def test_a_file_comes_in_under_a_name_of_ours(house: House) -> None:
    await house.wire.upload(("../../letter.pdf", LETTER), caption="what is this?")
    (received,) = await house.hears("message:received")
    (file,) = received["attachments"]
    path = Path(file["path"])
    assert await anyio.Path(path).read_bytes() == LETTER
    assert house.gateway.home.files in path.parents
    assert (file["name"], file["size"]) == ("letter.pdf", len(LETTER))
    assert "letter" not in path.name


async def test_an_album_is_one_message(house: House) -> None:
    await house.wire.upload(("a.jpg", b"a"), ("b.jpg", b"b"), ("c.jpg", b"c"), caption="what is this?")
    await house.shows("It is 42.")
    (received,) = await house.hears("message:received")
    assert [await anyio.Path(one["path"]).read_bytes() for one in received["attachments"]] == [b"a", b"b", b"c"]


async def test_reactions_are_told(house: House) -> None:
    message = await house.wire.write("hello")
    await house.wire.react(message, "👍")
    (reaction,) = await house.hears("reaction:added")
    assert (reaction["reaction"], reaction["message_id"], reaction["user_id"]) == (
        "👍",
        message,
        house.wire.known_as(ANN),
    )


async def test_in_a_group_only_what_is_meant_for_us_is_answered_and_in_its_place(house: House) -> None:
    wire = house.wire
    await wire.write("what is it, Ben?", chat=GROUP)
    mention = await wire.mention("what is it?", chat=GROUP)
    (shown,) = await house.shows("It is 42.")
    assert (shown.chat, shown.reply_to) == (GROUP, mention)
    await wire.write("and you?", chat=GROUP, reply_to=shown.id)
    await house.shows("I heard you.")
    await wire.write("/whoami", chat=GROUP, by=BEN, thread="5")
    (shown,) = await house.shows(f"user {wire.known_as(BEN)}")
    assert shown.thread == "5"
    assert len(wire.shown) == 3


async def test_other_bots_are_not_answered_and_what_nobody_knows_is_passed_over(house: House) -> None:
    await house.wire.by_a_bot("what is it?")
    await house.wire.noise()
    await house.wire.write("")
    await house.wire.write("and you?")
    await house.shows("I heard you.")
    assert len(house.wire.shown) == 1


@pytest.mark.parametrize("text", ["שלום what is 7?", "what is 👩‍👩‍👧‍👦🏳️‍🌈?", "what is \u202e\u0000this?"])
async def test_any_text_arrives_as_it_is(house: House, text: str) -> None:
    await house.wire.write(text)
    (received,) = await house.hears("message:received")
    assert received["text"] == text


async def test_a_long_answer_comes_in_whole_pieces(wire: Wire, tmp_path: Path) -> None:
    code = "\n".join(f"print('{'😀' * 20} {number}')" for number in range(300))
    answer = f"Before.\n\n```python\n{code}\n```\n\nAfter <b>it</b>."
    async with housed(wire, tmp_path / "home", {"text": answer}) as house:
        await wire.write("code, please")
        await house.shows("After <b>it</b>.")
        (sent,) = await house.hears("message:sent")
        assert len(sent["message_ids"]) == len(wire.shown) > 3
        assert [one.id for one in wire.shown] == sent["message_ids"]
        together = "\n".join(one.text for one in wire.shown)
        for line in code.splitlines():
            assert line in together


async def test_too_many_messages_wait_as_long_as_they_are_told(house: House) -> None:
    house.wire.flood(0.3)
    begun = time.monotonic()
    await house.wire.write("what is it?")
    await house.shows("It is 42.")
    assert time.monotonic() - begun > 0.3
    await house.hears("message:sent")


async def test_a_chat_that_is_closed_to_us_is_told_as_a_failure(house: House) -> None:
    house.wire.forbid(ANN)
    await house.wire.write("what is it?")
    (failed,) = await house.hears("message:failed")
    assert "blocked" in failed["error"]
    await house.wire.write("what is it?", by=BEN)
    await house.shows("It is 42.")


async def test_a_line_that_breaks_is_built_anew(house: House) -> None:
    house.wire.hang_up()
    await house.wire.write("what is it?")
    await house.shows("It is 42.")


async def test_a_token_that_is_no_longer_good_is_said_with_the_remedy(house: House) -> None:
    house.wire.revoke()
    await until(lambda: "token" in house.presence.detail, "the news")
    assert not house.presence.up
    assert house.told("platform:down")[-1]["reason"] == house.presence.detail


async def test_what_came_while_nobody_listened_is_answered(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home") as house:
        await wire.write("and you?")
        await house.shows("I heard you.")
    await wire.write("what is it?")
    async with housed(wire, tmp_path / "home") as house:
        await house.shows("It is 42.")
        assert len(house.with_text("I heard you.")) == 1


async def test_the_network_sees_that_somebody_is_at_work(wire: Wire, tmp_path: Path) -> None:
    slow = {"chunks": ["slow", " answer"], "delay": "100ms"}
    async with housed(wire, tmp_path / "home", slow) as house:
        await wire.write("hello")
        await until(lambda: wire.signs(ANN) > 0, "the sign")
        await house.shows("slow answer")
