"""What holds for every chat network where people change what they have said: they edit it, or take it back.

It is a part of the suite that `gateway.testing.networks.suite` is.
"""

from pathlib import Path
from typing import Any

import anyio

from gateway import record_subjects, records
from gateway.message_pieces import DELETED
from gateway.sessions.export import as_json
from gateway.testing.live_gateway import until
from gateway.testing.networks.house import SCRIPT, House, housed
from gateway.testing.networks.wire import Wire

SLOW = {"user": "hello", "chunks": ["It ", "took ", "long."], "delay": "60s"}  # until somebody says stop


async def count_inbound(house: House) -> int:
    """How much came in in the conversation of the first turn, and is there."""
    subject = record_subjects.session_subject_of("in", house.told("agent:start")[0]["session_key"])
    return len(await house.gateway.engine.read(subject, 0, 10))


def list_texts(house: House) -> list[dict[str, Any]]:
    """What was heard, without commands."""
    return [one for one in house.told("message:received") if not one["text"].startswith("/")]


async def test_an_edit_comes_as_an_edit(house: House) -> None:
    message = await house.wire.write("what was it?")
    await house.shows("I heard you.")
    await house.wire.edit(message, "what is it?")
    await house.shows("It is 42.")


async def test_an_edit_of_what_is_being_answered_begins_the_answer_again(wire: Wire, tmp_path: Path) -> None:
    """Where `sessions.busy` is interrupt: neither the chat nor the model keeps anything of what was said wrongly."""
    slow = {"user": "what was", "chunks": ["It ", "was ", "41."], "delay": "60s"}
    async with housed(wire, tmp_path / "home", slow, *SCRIPT, settings="sessions: {busy: interrupt}\n") as house:
        message = await wire.write("what was it?")
        await until(lambda: bool(house.told("llm:before")), "the call of the model")
        await wire.edit(message, "what is it?")
        await house.shows("It is 42.")
        first, second = await house.hears("message:received", 2)
        assert (second["text"], second["text_before"]) == ("what is it?", "what was it?")
        assert (first["text_before"], second["message_id"]) == ("", first["message_id"])
        assert "what was it" not in str(house.told("llm:before")[-1]["messages"])
        assert not house.with_text("It was")


async def test_an_edit_of_what_waits_changes_it(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", SLOW, *SCRIPT) as house:
        await wire.write("hello")
        await until(lambda: bool(house.told("agent:start")), "the turn")
        message = await wire.write("what was it?")
        for number in range(2, 4):

            async def is_there(count: int = number) -> bool:
                return await count_inbound(house) == count

            await until(is_there, f"message {number}")
            if number == 2:
                await wire.edit(message, "what is it?")
        await wire.write("/stop")
        await house.shows("It is 42.")
        _, second = list_texts(house)
        assert (second["text"], second["text_before"]) == ("what is it?", "what was it?")
        assert not house.with_text("I heard you.")


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
            return "mellon" not in await read() and not await gateway.search.find("mellon")

        await until(has_gone, "the words are gone")
        assert DELETED in await read()
        assert "what is it?" in await read()
        assert await gateway.search.find("deleted")
        assert not await anyio.Path(received["attachments"][0]["path"]).exists()
        inbound = records.read_all(gateway.engine, record_subjects.IN_SUBJECTS, records.InboundMessage)
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
        assert await house.gateway.search.find("mellon")
