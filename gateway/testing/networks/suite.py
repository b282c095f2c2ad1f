"""The suite: all that an adapter can break, on every chat network with its real library and a server on loopback.

A file of tests that imports all of this module and has a fixture `wire` runs it (see `gateway.testing.networks`).
"""

import dataclasses
import random
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.daemon.platforms import PROBE_SECONDS, steer_platform
from gateway.errors import AdapterError
from gateway.events import Event
from gateway.messages.pieces import DELETED
from gateway.sessions.export import as_json
from gateway.testing.live_gateway import until
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.suite_groups import *  # noqa: F403 - each test of it is one of this file
from gateway.testing.networks.suite_groups import admitting
from gateway.testing.networks.suite_parts import *  # noqa: F403 - each test of it is one of this file
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER, Wire

LETTER = b"%PDF-1.4 a letter"
TEXTS = ("שלום what is 7?", "what is 👩‍👩‍👧‍👦🏳️‍🌈?", "what is \u202e\u0000this?")
pytestmark = pytest.mark.anyio


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


async def test_a_network_proves_itself_by_what_comes_and_goes(house: House) -> None:
    assert not house.presence.last_event
    await house.wire.write("what is it?")
    await house.hears("message:sent")
    assert house.presence.last_event
    assert house.presence.last_send


@pytest.mark.row("T30")
async def test_no_answer_shows_what_a_link_leads_to_or_calls_everybody(wire: Wire, tmp_path: Path) -> None:
    """The servers refuse a message that would do so, whether it is sent or edited."""
    answer = "see https://example.com/?q=secret @everyone @here <!channel> <@&3001> and [this](https://example.com)"
    async with housed(wire, tmp_path / "home", {"chunks": answer.split(" "), "delay": "50ms"}) as house:
        await wire.write("hello")
        (sent,) = await house.hears("message:sent")
        await house.shows_all(sent["message_ids"])
        assert "example.com" in wire.shown[0].text
        assert not house.told("message:failed")


async def test_what_the_network_delivers_twice_is_answered_once(house: House) -> None:
    await house.wire.write("what is it?")
    await house.shows("It is 42.")
    await house.wire.again()
    await house.wire.write("and you?")
    await house.shows("I heard you.")
    assert len(await house.shows("It is 42.")) == 1


@pytest.mark.row("T16", "T17")
async def test_a_stranger_is_denied_by_every_way_in(house: House) -> None:
    """Each way ends at the same access control; the only result is one pairing code, in the stranger's own chat."""
    wire = house.wire
    message = await wire.write("hello", by=STRANGER)
    await wire.write("/status", by=STRANGER)
    await wire.write("hello", by=STRANGER, reply_to=message)
    await wire.edit(message, "hello!", by=STRANGER)
    await wire.upload(("letter.pdf", LETTER), by=STRANGER)
    await wire.react(message, "👍", by=STRANGER)
    await wire.mention("hello", by=STRANGER)
    await wire.write("/whoami", by=STRANGER, chat=GROUP)
    await until(lambda: len(house.told("access:denied")) == 8, "eight denials")
    await wire.write("what is it?")
    await house.shows("It is 42.")
    assert len([one for one in wire.shown if one.chat == STRANGER]) == len(house.with_text("pairing code")) == 1
    assert {one.chat for one in wire.shown} == {ANN, STRANGER}
    assert len(house.told("message:received")) == 1
    assert not house.told("reaction:added")
    assert not list(house.gateway.home.files.rglob("*.pdf"))


@pytest.mark.row("T18")
async def test_an_invitation_is_what_the_networks_own_people_can_use(wire: Wire, tmp_path: Path) -> None:
    """They open a link, or write to the bot."""
    async with housed(wire, tmp_path / "home", settings=admitting(wire)) as house:
        await wire.write("/pairing invite --for 2h")
        (told,) = await house.shows("Invitation #1")
        await wire.write(invitation_in(told.text)[1], by=STRANGER)
        await house.shows("You can use this bot now")
        (paired,) = await house.hears("access:paired")
        assert paired["user_id"] == wire.known_as(STRANGER)
        await wire.write("what is it?", by=STRANGER)
        (shown,) = await house.shows("It is 42.")
        assert shown.chat == STRANGER


def invitation_in(told: str) -> tuple[str, str]:
    """Return the code, and the text that a person who follows the invitation sends to the bot on this network."""
    found = re.search(r"\?start=(\w+)|([!/]start (\w+))", told)
    assert found, told
    return (found[1], f"/start {found[1]}") if found[1] else (found[3], found[2])


ASKS = (
    {
        "user": "do it",
        "answers": [{"tool_calls": [{"name": "shell", "args": {"command": "echo x"}}]}, {"text": "Did."}],
    },
    *({"text": "I heard you."},) * 20,
)


def may_ask(wire: Wire) -> str:
    """Return settings with Ann as the owner, who decides for herself whether a tool may run."""
    return f"tools: {{shell: ask}}\n{wire.own(ANN)}"


async def test_a_question_is_answered_by_a_button_that_then_is_dead(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", *ASKS, settings=may_ask(wire)) as house:
        await wire.write("do it")
        await until(lambda: any(one.buttons for one in wire.shown), "the buttons")
        (question,) = [one for one in wire.shown if one.buttons]
        left_standing = dataclasses.replace(question, buttons=dict(question.buttons))
        await wire.press(question, "Yes")
        await house.shows("Did.")
        await until(lambda: not question.buttons, "the end of the buttons")
        await wire.write("do it")
        await until(lambda: any(one.buttons for one in wire.shown), "the next question")
        before = len(wire.shown)
        await wire.press(left_standing, "Yes")
        await wire.write("/whoami")
        await until(lambda: len(wire.shown) > before, "the question afterwards")
        assert not house.with_text("no longer open"), "a second press is silent"
        assert len(house.with_text("Did.")) == 1


async def test_the_answer_is_a_new_message_below_words_before_a_tool_and_its_question(
    wire: Wire, tmp_path: Path
) -> None:
    """A network notifies people of new messages only; and no message confirms the press."""
    asks: Any = ASKS[0]["answers"]
    looks = {"chunks": ["Let ", "me ", "look."], "delay": "400ms", **asks[0]}
    script = {"user": "do it", "answers": [looks, {"text": "Did."}]}
    async with housed(wire, tmp_path / "home", script, settings=may_ask(wire)) as house:
        await wire.write("do it")
        await until(lambda: any(one.buttons for one in wire.shown), "the buttons")
        (question,) = [one for one in wire.shown if one.buttons]
        await wire.press(question, "Yes")
        await house.shows("Did.")
        await until(lambda: "Allowed by" in question.text, "the end of the question")
        words, asked, answer = (one for one in wire.shown if not one.is_draft)
        assert (words.text.strip(), asked, answer.text.strip()) == ("Let me look.", question, "Did.")


@pytest.mark.row("T17", "T18")
async def test_in_a_group_nobody_answers_in_somebody_elses_stead(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", *ASKS, settings=may_ask(wire)) as house:
        await wire.mention("do it", chat=GROUP)
        await until(lambda: any(one.buttons for one in wire.shown), "the buttons")
        (question,) = [one for one in wire.shown if one.buttons]
        await wire.press(question, "Yes", by=BEN)
        await wire.press(question, "Yes", by=STRANGER)
        await until(lambda: len(house.told("access:denied")) == 1, "the denial")
        await wire.write("and you?", by=BEN)
        await house.shows("I heard you.")
        assert question.buttons
        assert not house.with_text("Did.")
        await wire.press(question, "Yes")
        await house.shows("Did.")


async def test_commands_are_commands(house: House) -> None:
    await house.wire.write("/whoami")
    (shown,) = await house.shows(f"user {house.wire.known_as(ANN)}")
    assert house.wire.network in shown.text


async def test_an_edit_comes_as_an_edit(house: House) -> None:
    message = await house.wire.write("what was it?")
    await house.shows("I heard you.")
    await house.wire.edit(message, "what is it?")
    await house.shows("It is 42.")


async def test_what_its_author_takes_back_is_gone(house: House) -> None:
    message = await house.wire.write("the word is mellon")
    await house.shows("I heard you.")
    (received,) = await house.hears("message:received")
    await house.wire.delete(message)

    async def read() -> str:
        return as_json(await house.gateway.sessions.open(received["session_key"]))

    async def is_gone() -> bool:
        return DELETED in await read()

    await until(is_gone, "the deletion")
    assert "mellon" not in await read()


async def test_a_file_comes_in_under_a_name_of_ours(house: House) -> None:
    await house.wire.upload(("../../letter.pdf", LETTER), caption="what is this?")
    (received,) = await house.hears("message:received")
    (file,) = received["attachments"]
    path = Path(file["path"])
    assert await anyio.Path(path).read_bytes() == LETTER
    assert house.gateway.home.files in path.parents
    assert (file["name"], file["size"]) == ("letter.pdf", len(LETTER))
    (start,) = await house.hears("agent:start")
    assert start["message_full"].startswith("what is this?\n[attached document: letter.pdf")
    assert str(path) in start["message_full"]
    assert "letter" not in path.name


async def test_an_album_is_one_message(house: House) -> None:
    await house.wire.upload(("a.jpg", b"a"), ("b.jpg", b"b"), ("c.jpg", b"c"), caption="what is this?")
    await house.shows("It is 42.")
    (received,) = await house.hears("message:received")
    assert [await anyio.Path(one["path"]).read_bytes() for one in received["attachments"]] == [b"a", b"b", b"c"]
    assert {one["kind"] for one in received["attachments"]} == {"image"}


async def test_reactions_are_told(house: House) -> None:
    message = await house.wire.write("hello")
    await house.wire.react(message, "👍")
    (reaction,) = await house.hears("reaction:added")
    assert (reaction["reaction"], reaction["message_id"], reaction["user_id"]) == (
        "👍",
        message,
        house.wire.known_as(ANN),
    )


@pytest.mark.row("T34")
async def test_other_bots_are_not_answered_and_what_nobody_knows_is_passed_over(house: House) -> None:
    await house.wire.by_a_bot("what is it?")
    await house.wire.noise()
    await house.wire.write("")
    await house.wire.write("and you?")
    await house.shows("I heard you.")
    assert len(house.wire.shown) == 1


async def test_any_text_arrives_as_it_is(house: House) -> None:
    for count, text in enumerate(TEXTS, 1):
        await house.wire.write(text)
        received = (await house.hears("message:received", count))[-1]
        assert received["text"] == text


async def test_a_long_answer_comes_in_whole_pieces(wire: Wire, tmp_path: Path) -> None:
    code = "\n".join(f"print('{'😀' * 20} {number}')" for number in range(300))
    answer = f"Before.\n\n```python\n{code}\n```\n\nAfter <b>it</b>."
    async with housed(wire, tmp_path / "home", {"text": answer}) as house:
        await wire.write("code, please")
        await house.shows("After <b>it</b>.")
        (sent,) = await house.hears("message:sent")
        await house.shows_all(sent["message_ids"])
        assert len(wire.shown) > 1
        together = "\n".join(one.text for one in wire.shown)
        for line in code.splitlines():
            assert line in together


async def test_an_answer_is_so_many_messages_and_the_rest_a_file(wire: Wire, tmp_path: Path) -> None:
    """The limit also holds for an answer that is shown while it grows."""
    answer = "\n".join(f"This is line {number} of many." for number in range(2000))
    third = len(answer) // 3
    pieces = [answer[:third], answer[third : 2 * third], answer[2 * third :]]
    settings = f"platforms: {{{wire.network}: {{max_parts: 3}}}}\n"
    async with housed(wire, tmp_path / "home", {"chunks": pieces, "delay": "300ms"}, settings=settings) as house:
        await wire.write("all of it, please")
        (sent,) = await house.hears("message:sent")
        await until(lambda: len(wire.shown) >= len(sent["message_ids"]), "the file behind them")
        first, second, file = wire.shown
        assert first.text.startswith("This is line 0 of many.")
        assert len(first.text) > 1000 < len(second.text)
        assert (file.file_name, file.file.decode()) == ("answer.md", answer)


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
    await until(lambda: any("token" in one["reason"] for one in house.told("platform:down")), "the news")
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


async def test_an_answer_is_shown_while_it_grows_and_stays_one_message(wire: Wire, tmp_path: Path) -> None:
    slow = {"chunks": [f"word{number} " for number in range(12)], "delay": "150ms"}
    async with housed(wire, tmp_path / "home", slow) as house:
        await wire.write("hello")
        await house.shows("word0")
        assert "word11" not in wire.shown[0].text
        await house.shows("word11")
        (sent,) = await house.hears("message:sent")
        assert sent["message_ids"] == [one.id for one in wire.shown] == [wire.shown[0].id]


async def test_in_a_group_an_answer_grows_in_its_place_and_stays_one_message(wire: Wire, tmp_path: Path) -> None:
    slow = {"chunks": [f"word{number} " for number in range(12)], "delay": "150ms"}
    async with housed(wire, tmp_path / "home", slow) as house:
        await wire.mention("hello", chat=GROUP)
        await house.shows("word0")
        assert "word11" not in wire.shown[0].text
        await house.shows("word11")
        (sent,) = await house.hears("message:sent")
        assert sent["message_ids"] == [one.id for one in wire.shown]


async def test_an_answer_that_is_stopped_while_it_grows_ends_where_it_is(wire: Wire, tmp_path: Path) -> None:
    slow = {"chunks": [f"word{number} " for number in range(12)], "delay": "400ms"}
    async with housed(wire, tmp_path / "home", slow) as house:
        await wire.write("hello")
        await house.shows("word1")
        await wire.write("/stop")
        await house.hears("agent:end")
        await wire.write("/whoami")
        await house.shows(f"user {wire.known_as(ANN)}")
        assert not [one for one in wire.shown if one.is_draft or "word11" in one.text]


async def test_an_answer_that_grows_when_the_gateway_ends_is_ended_in_its_place_by_the_next(
    wire: Wire, tmp_path: Path
) -> None:
    words = [f"word{number} " for number in range(12)]
    async with housed(wire, tmp_path / "home", {"chunks": words, "delay": "400ms"}) as house:
        await wire.write("hello")
        await house.shows("word0")
    async with housed(wire, tmp_path / "home", {"chunks": words, "delay": "20ms"}) as house:
        (shown,) = await house.shows("word11")
        assert [one for one in wire.shown if not one.is_draft] == [shown]


async def test_whoever_changes_an_answer_that_grew_already_has_the_last_word(wire: Wire, tmp_path: Path) -> None:
    slow = {"chunks": [f"word{number} " for number in range(12)], "delay": "150ms"}
    async with housed(wire, tmp_path / "home", slow) as house:

        def change(event: Event) -> None:
            event["text"] = "It is another one."

        await wire.write("hello")
        await house.shows("word0")
        house.gateway.registry.on("message:sending", change)
        await house.hears("message:sent")
        await house.shows("It is another one.")


def wait_for(path: Path) -> dict[str, Any]:
    """Make a model's answer that has the shell wait for a file."""
    return {"tool_calls": [{"name": "shell", "args": {"command": f"until [ -e {path} ]; do sleep 0.05; done"}}]}


def tooling(wire: Wire, go: Path, *answers: dict[str, Any], progress: str = "tools") -> tuple[dict[str, Any], str]:
    """Make a script in which the shell runs until a file exists, with the settings for it."""
    script = {"user": "do it", "answers": [wait_for(go), *answers]}
    return script, f"display: {{progress: {progress}}}\ntools: {{shell: allow}}\n{wire.own(ANN)}"


async def test_what_the_tools_do_is_a_line_that_the_answer_takes_the_place_of(wire: Wire, tmp_path: Path) -> None:
    script, settings = tooling(wire, tmp_path / "go", {"text": "Did."})
    async with housed(wire, tmp_path / "home", script, settings=settings) as house:
        await wire.write("do it")
        (line,) = await house.shows("shell")  # a message, or a draft of one
        assert "until" not in line.text
        await anyio.Path(tmp_path / "go").touch()
        await house.shows("Did.")
        await until(lambda: not house.with_text("shell"), "the end of the line")
        (sent,) = await house.hears("message:sent")
        assert sent["message_ids"] == [one.id for one in wire.shown]
        assert line.is_draft or line.id not in sent["message_ids"], "an edit rings no bell"
        assert len(wire.shown) == 1


async def test_a_turn_that_is_stopped_leaves_no_line_of_its_tools(wire: Wire, tmp_path: Path) -> None:
    script, settings = tooling(wire, tmp_path / "go", progress="all")
    async with housed(wire, tmp_path / "home", script, settings=settings) as house:
        await wire.write("do it")
        (line,) = await house.shows("shell")
        assert "until" in line.text
        await wire.write("/stop")
        await until(lambda: not house.with_text("shell"), "the end of the line")
        assert [one["stop"] for one in await house.hears("agent:end")] == ["interrupted"]


async def test_a_line_that_breaks_in_the_middle_of_an_answer_loses_and_doubles_nothing(
    wire: Wire, tmp_path: Path
) -> None:
    slow = {"chunks": [f"word{number} " for number in range(12)], "delay": "150ms"}
    async with housed(wire, tmp_path / "home", slow) as house:
        await wire.write("hello")
        await house.shows("word0")
        wire.hang_up()
        await house.shows("word11")
        await house.hears("message:sent")
        assert len(wire.shown) == 1


async def test_files_go_out_and_come_in_whole_when_they_are_large(wire: Wire, tmp_path: Path) -> None:
    """A hook adds one of the owner's files to the answer to the owner."""
    async with housed(wire, tmp_path / "home", settings=wire.own(ANN)) as house:
        data = random.Random(1).randbytes(8_000_000)  # noqa: S311 - the same at each run
        path = house.gateway.home.own_folder / "workspace" / "large.bin"
        await anyio.Path(path).write_bytes(data)

        async def attach(event: Event) -> None:
            event["attachments"] = [{"kind": "document", "path": str(path), "name": "large.pdf"}]

        house.gateway.registry.on("message:sending", attach)
        await house.wire.upload(("large.pdf", data), caption="what is this?")
        await until(lambda: any(one.file for one in house.wire.shown), "the file")
        (shown,) = [one for one in house.wire.shown if one.file]
        assert (shown.file == data, shown.file_name) == (True, "large.pdf")
        (received,) = await house.hears("message:received")
        assert await anyio.Path(received["attachments"][0]["path"]).read_bytes() == data
        await house.hears("message:sent")


async def test_a_bot_with_a_name_goes_on_where_it_was(wire: Wire, tmp_path: Path) -> None:
    """A network may have several bots; one with a name continues after a pause, and after a restart of the gateway."""
    async with housed(wire, tmp_path / "home", account="work") as house:
        await wire.write("and you?")
        await house.shows("I heard you.")
        (received,) = await house.hears("message:received")
        assert received["session_key"] == f"agent:main:{wire.network}:work:dm:{received['chat_id']}"
        steer_platform(house.gateway.platforms, "pause", house.name)
        await until(lambda: house.part.state == "paused", "the pause")
        await wire.write("what is it?")
        steer_platform(house.gateway.platforms, "resume", house.name)
        await house.shows("It is 42.")
    await wire.write("what is it?")
    async with housed(wire, tmp_path / "home", account="work") as house:
        await house.shows("It is 42.", 2)
        assert len(wire.shown) == 3


async def test_one_network_can_be_paused_and_goes_on_with_what_came_meanwhile(house: House) -> None:
    wire = house.wire
    steer_platform(house.gateway.platforms, "pause", wire.network)
    await until(lambda: house.part.state == "paused", "the pause")
    assert not house.presence.up
    await wire.write("what is it?")
    await anyio.sleep(0.05)
    assert not wire.shown
    steer_platform(house.gateway.platforms, "resume", wire.network)
    await house.shows("It is 42.")
    steer_platform(house.gateway.platforms, "restart", wire.network)
    await house.is_up()
    await wire.write("and you?")
    await house.shows("I heard you.")
    with pytest.raises(AdapterError, match="network 'telegraph' not found"):
        steer_platform(house.gateway.platforms, "pause", "telegraph")


async def test_a_network_says_when_it_is_asked_whether_it_answers(house: House) -> None:
    part = next(one for one in house.gateway.platforms if one.name == house.wire.network)
    await house.is_up()
    before = house.presence.last_probe
    assert 0 < await part.probe() < PROBE_SECONDS
    assert house.presence.last_probe > before
    steer_platform(house.gateway.platforms, "pause", house.wire.network)
    await until(lambda: house.part.state == "paused", "the pause")
    with pytest.raises(AdapterError, match="is not connected: paused"):
        await part.probe()
