"""What holds whichever network a message came by, where it takes a group, a stranger, or an author who takes it back.

Shown once, on Discord's wire; the rest is in `test_core.py`.
"""

import dataclasses
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from gateway.config.settings import ChatSettings
from gateway.events import Event
from gateway.messages.pieces import DELETED
from gateway.records import records, subjects
from gateway.sessions.export import as_json
from gateway.testing.live_gateway import until
from gateway.testing.networks.house import SCRIPT, housed
from gateway.testing.networks.suite import invitation_in
from gateway.testing.networks.suite_groups import (
    admitting,
    get_last_question,
    list_heard,
    make_quiet,
    remembers,
)
from gateway.testing.networks.wire import ANN, BEN, GROUP, SECOND_STRANGER, STRANGER, Shown, Wire
from tests.adapters.discord_wire import DiscordWire
from tests.adapters.test_core import SLOW, count_inbound, list_texts

ANSWERS = {"never": 0, "mention": 1, "quiet": 1, "always": 2}  # how much of a word to all and one to us is answered
THREAD = "5"


@pytest.fixture
async def wire() -> AsyncIterator[Any]:
    wire = DiscordWire()
    async with wire.serving():
        yield wire


@pytest.mark.row("T18")
async def test_who_is_paired_may_speak_in_direct_messages_and_nowhere_else(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=admitting(wire)) as house:
        await wire.write("hello", by=STRANGER)
        (told,) = await house.shows("pairing code")
        code = told.text.split("code is ")[1][:8]
        await wire.write(f"/pairing approve {code}", by=BEN)
        await house.shows("Unknown command here: /pairing")
        await wire.write(f"/pairing approve {code}")
        await house.shows("You can use this bot now")
        assert len(await house.hears("access:paired")) == 1
        await wire.write("what is it?", by=STRANGER)
        (shown,) = await house.shows("It is 42.")
        assert shown.chat == STRANGER
        denied = len(house.told("access:denied"))
        await wire.mention("what is it?", by=STRANGER)
        await until(lambda: len(house.told("access:denied")) == denied + 1, "the denial")
        await wire.write("/pairing approve NOTACODE")
        await house.shows("The code was not found")


@pytest.mark.row("T18")
async def test_an_invitation_lets_in_whoever_comes_first_with_it_and_nobody_else(wire: Wire, tmp_path: Path) -> None:
    """What is passed on is what the network's own people can use: a link, or what they write to the bot."""
    async with housed(wire, tmp_path / "home", settings=admitting(wire)) as house:
        await wire.write("/pairing invite --as owner")
        await house.shows("An owner is made where the gateway runs")
        await wire.mention("!pairing invite")
        await house.shows("ask me for it in a direct message")
        await wire.write("/pairing invite --for 2h")
        (told,) = await house.shows("Invitation #1")
        code, said = invitation_in(told.text)
        await wire.write(said.replace(code, "ANOTHER"), by=STRANGER)
        (turned_away,) = await house.shows("This invitation is no longer valid")
        assert "pairing code is" in turned_away.text
        await wire.write(said, by=STRANGER)
        await house.shows("You can use this bot now")
        (paired,) = await house.hears("access:paired")
        assert (paired["user_id"], paired["role"]) == (wire.known_as(STRANGER), "user")
        await wire.write("what is it?", by=STRANGER)
        (shown,) = await house.shows("It is 42.")
        assert shown.chat == STRANGER
        await wire.write(said, by=SECOND_STRANGER)
        await house.hears("access:denied", 2)
        rows, _ = await house.gateway.groups.storage.activity.read(0, 0.0)
        done = [(row["what"], row["outcome"], row["who"]) for row in rows if row["what"].startswith("pairing.")]
        ann, stranger = (f"{wire.network}:{wire.known_as(one)}" for one in (ANN, STRANGER))
        assert done == [
            ("pairing.invite", "refused", ann),
            ("pairing.invite", "done", ann),
            ("pairing.use", "done", stranger),
        ]


async def find_places(wire: Wire, root: Path) -> tuple[str, str]:
    """How the configuration calls the group, and a thread in it."""
    async with housed(wire, root) as house:
        for count, thread in enumerate(("", THREAD), 1):
            await wire.write("/whoami", chat=GROUP, thread=thread)
            await house.hears("message:received", count)
        above, below = house.told("message:received")
        chat = f"{wire.network}:{above['chat_id']}"
        return chat, f"{chat}:{below['thread_id']}"


async def has_buttons(shown: Shown) -> None:
    """Wait until all are there: a network may put them below the message one by one."""
    await until(lambda: "typing" in shown.buttons, "the last button")


async def test_what_the_configuration_says_of_a_chat_is_shown_as_fixed_and_not_changed_there(
    wire: Wire, tmp_path: Path
) -> None:
    chat, _ = await find_places(wire, tmp_path / "home")
    async with housed(wire, tmp_path / "home", settings=admitting(wire)) as house:
        answered = 0
        for number, (answer, count) in enumerate(ANSWERS.items(), 1):
            chats = {chat: msgspec.convert({"answer": answer}, ChatSettings)}
            house.gateway.groups.people.chats.apply_settings(
                msgspec.structs.replace(house.gateway.settings, chats=chats)
            )
            await wire.write("/settings", chat=GROUP)
            (shown,) = [one for one in await house.shows("Settings of", number) if f"group): {answer}," in one.text]
            assert f"{answer}, by config.yaml: chats.{chat}, which is fixed" in shown.text
            await has_buttons(shown)
            assert ("answer" in shown.buttons, "typing" in shown.buttons) == (False, True)
            await wire.write("/settings answer default", chat=GROUP)
            await house.shows(f"answer is fixed here: {answer}, by config.yaml")
            await wire.write("what is it, Ben?", chat=GROUP)
            await wire.mention("what is it, you?")
            answered += count
            await house.shows("It is 42.", answered)
        assert len(house.with_text("It is 42.")) == answered
        assert not house.gateway.groups.people.chats.kept.chats


async def test_a_chat_and_a_thread_have_an_agent_a_model_and_a_language_of_their_own(
    wire: Wire, tmp_path: Path
) -> None:
    second = tmp_path / "second.yaml"
    await anyio.Path(second).write_text(json.dumps({"turns": [{"user": "what is", "text": "Es ist 42."}]}))
    chat, thread = await find_places(wire, tmp_path / "home")
    chats = {chat: {"model": "second", "language": "de-AT"}, thread: {"answer": "always", "agent": "science"}}
    settings = {
        "agents": {"science": {}},
        "models": {"second": {"provider": "demo", "script": str(second)}},
        "chats": chats,
    }
    lines = "".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items())
    async with housed(wire, tmp_path / "home", settings=lines) as house:
        await wire.write("what is it?")
        await house.shows("It is 42.")
        assert "de-AT" not in str(house.told("llm:before")[-1])
        await wire.mention("what is it?")
        await house.shows("Es ist 42.")
        assert "de-AT" in str(house.told("llm:before")[-1])
        await wire.write("what is it?", chat=GROUP, thread=THREAD)
        (_, shown) = await house.shows("Es ist 42.", 2)
        assert (shown.chat, shown.thread) == (GROUP, THREAD)
        assert [one["agent"] for one in house.told("agent:end")] == ["main", "main", "science"]


async def test_a_chat_is_shown_what_the_tools_do_where_that_is_its_rule(wire: Wire, tmp_path: Path) -> None:
    chat, _ = await find_places(wire, tmp_path / "home")
    go = tmp_path / "go"
    waits = {"tool_calls": [{"name": "shell", "args": {"command": f"until [ -e {go} ]; do sleep 0.05; done"}}]}
    script: dict[str, Any] = {"user": "do it", "answers": [waits, {"text": "Did."}] * 2}
    rules = json.dumps({chat: {"progress": "all"}})
    settings = f"chats: {rules}\ntools: {{shell: allow}}\n{wire.own(ANN)}"
    async with housed(wire, tmp_path / "home", script, *SCRIPT, settings=settings) as house:
        await wire.write("do it")
        await until(lambda: len(house.told("tool:before")) == 1, "the tool")
        await wire.mention("do it")
        (line,) = await house.shows("until")
        assert line.chat == GROUP
        await anyio.Path(go).touch()
        await house.shows("Did.", 2)
        await until(lambda: not house.with_text("until"), "the end of the line")


async def test_settings_of_a_chat_are_changed_by_buttons_that_are_for_admins(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=f"{admitting(wire)}agents: {{science: {{}}}}\n") as house:
        await wire.write("/settings", chat=GROUP)
        (shown,) = await house.shows("Settings of")
        await wire.press(shown, "agent")
        (offer,) = await house.shows("It can be: main, science")
        await wire.press(dataclasses.replace(offer, buttons=dict(offer.buttons)), "science", by=BEN)
        await wire.write("/whoami", by=BEN, chat=GROUP)
        await house.shows(f"user {wire.known_as(BEN)}")
        assert not house.gateway.groups.people.chats.kept.chats
        await wire.press(offer, "science")
        await house.shows("science, by /settings")
        await wire.mention("what is it?", by=BEN, chat=GROUP)
        await house.shows("It is 42.")
        (received,) = [one for one in house.told("message:received") if "what is it" in one["text"]]
        assert received["agent"] == "science"


async def test_what_was_heard_in_a_quiet_chat_is_there_after_a_start(wire: Wire, tmp_path: Path) -> None:
    settings = admitting(wire)
    async with housed(wire, tmp_path / "home", settings=settings) as house:
        await make_quiet(house)
        await wire.write("the word is mellon", by=BEN, chat=GROUP)
        await remembers(house, "the word is mellon")
    async with housed(wire, tmp_path / "home", settings=settings) as house:
        await wire.mention("what is it?")
        await house.shows("It is 42.")
        assert "the word is mellon" in get_last_question(house)
        await wire.write("/settings answer default", chat=GROUP)
        await house.shows("mention, by")
        await wire.mention("and you?")
        await house.shows("I heard you.")
        assert not house.told("message:received")[-1]["heard"]


async def test_what_its_author_deletes_in_a_quiet_chat_is_told_to_nobody(wire: Wire, tmp_path: Path) -> None:
    """Also where a hook took it out, so that it stands in no conversation."""
    async with housed(wire, tmp_path / "home", settings=admitting(wire)) as house:
        await make_quiet(house)

        def guard(event: Event) -> None:
            event["heard"] = [one for one in event["heard"] if "poison" not in one["text"]]

        house.gateway.registry.on("message:received", guard)
        early = await wire.write("the word is melon", by=BEN, chat=GROUP)
        late = await wire.write("the word is mellon", by=BEN, chat=GROUP)
        worst = await wire.write("poison of mellon", by=BEN, chat=GROUP)
        await remembers(house, "the word is melon", "the word is mellon", "poison of mellon")
        await wire.delete(early, by=BEN)
        await remembers(house, "the word is mellon", "poison of mellon")
        await wire.mention("what is it?")
        await house.shows("It is 42.")
        key = house.told("agent:end")[-1]["session_key"]

        async def read_conversation() -> str:
            session = await house.gateway.sessions.open(key)
            return "" if session.turn else as_json(session)

        async def is_gone() -> bool:
            said = await read_conversation()
            return DELETED in said and "mellon" not in said

        async def is_told() -> bool:
            return "mellon" in await read_conversation()

        async def is_nothing_left() -> bool:
            return not await house.gateway.engine.read(subjects.HEARD_SUBJECTS)

        await until(is_told, "the end of the turn")
        await wire.delete(worst, by=BEN)
        await remembers(house, "the word is mellon")
        await wire.delete(late, by=BEN)
        await until(is_gone, "the deletion")
        assert "what is it?" in await read_conversation()
        assert not await list_heard(house)
        await until(is_nothing_left, "what the conversation was told")


async def test_what_its_author_deletes_is_shown_nowhere_and_to_no_model(wire: Wire, tmp_path: Path) -> None:
    """Also when the gateway was started anew since, and the conversation was reset; what others said stays."""
    async with housed(wire, tmp_path / "home") as house:
        message = await wire.upload(("mellon.bin", b"\x00\x01"), caption="the word is mellon")
        await house.shows("I heard you.")
        (received,) = await house.hears("message:received")
        await wire.write("what is it?")
        await house.shows("It is 42.")
    async with housed(wire, tmp_path / "home") as house:
        await wire.write("/new")
        await house.shows("A new session begins")
        await wire.delete(message)
        gateway, key = house.gateway, received["session_key"]

        async def read() -> str:
            return "".join(map(as_json, (await gateway.sessions.read_all(key)).values()))

        async def has_gone() -> bool:
            return "mellon" not in await read() and not await gateway.groups.storage.search.find("mellon")

        await until(has_gone, "the words are gone")
        assert DELETED in await read()
        assert "what is it?" in await read()
        assert await gateway.groups.storage.search.find("deleted")
        assert not await anyio.Path(received["attachments"][0]["path"]).exists()
        inbound = records.read_all(gateway.engine, subjects.IN_SUBJECTS, records.InboundMessage)
        assert not [one async for _, one in inbound if "mellon" in one.message.text]
        (old,) = [one for one in await gateway.sessions.read_all(key) if one == received["session_id"]]
        await wire.write(f"/resume {old}")
        await house.shows("Back in")
        await wire.write("what is it?")
        await house.shows("It is 42.", 2)
        (asked,) = await house.hears("llm:before")
        assert "mellon" not in str(asked["messages"])
        assert DELETED in str(asked["messages"])


async def test_what_waits_and_is_deleted_is_not_answered(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW, *SCRIPT) as house:
        await wire.write("hello")
        await until(lambda: bool(house.told("agent:start")), "the turn")
        message = await wire.write("what is mellon?")

        async def waits() -> bool:
            return await count_inbound(house) == 2

        async def is_gone() -> bool:
            return await count_inbound(house) == 1

        await until(waits, "the second message")
        await wire.delete(message)
        await until(is_gone, "the deletion")
        await wire.write("/stop")
        await wire.write("what is it?")
        await house.shows("It is 42.")
        assert [one["text"] for one in list_texts(house)] == ["hello", "what is it?"]


async def test_what_is_deleted_is_kept_where_the_settings_want_it(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings="sessions: {deletions: keep}\n") as house:
        message = await wire.write("the word is mellon")
        await house.shows("I heard you.")
        await wire.delete(message)
        await wire.write("what is it?")
        await house.shows("It is 42.")
        assert await house.gateway.groups.storage.search.find("mellon")
