"""The rules for every chat network in groups: which messages are answered, who may change that, and what is overheard.

This is a part of the suite `gateway.testing.networks.suite`.
"""

from pathlib import Path

from gateway.records import records, subjects
from gateway.testing.live_gateway import until
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER, Wire


def admitting(wire: Wire) -> str:
    """Return the settings that make one of our people an admin."""
    return f"access: {{admins: {{{wire.network}: ['{wire.known_as(ANN)}']}}}}\n"


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


async def test_an_admin_says_in_a_group_what_is_answered_there(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=admitting(wire)) as house:
        await wire.write("/settings answer always", by=BEN, chat=GROUP)
        await house.shows("Unknown command here: /settings")
        await wire.write("/settings answer always", chat=GROUP)
        await house.shows("always, by /settings")
        await wire.write("what is it?", by=BEN, chat=GROUP)
        (shown,) = await house.shows("It is 42.")
        assert shown.chat == GROUP
        await wire.write("/settings answer never", chat=GROUP)
        await house.shows("never, by /settings")
        await wire.mention("what is it?", by=BEN, chat=GROUP)
        await wire.write("/settings answer default", chat=GROUP)
        await house.shows("mention, by default")
        await wire.mention("and you?", by=BEN, chat=GROUP)
        await house.shows("I heard you.")
        assert len(house.with_text("It is 42.")) == 1


async def make_quiet(house: House) -> None:
    await house.wire.write("/settings answer quiet", chat=GROUP)
    await house.shows("quiet, by /settings")


async def list_heard(house: House) -> list[str]:
    """List the remembered texts of quiet chats."""
    await house.gateway.groups.people.heard.flush()
    found = records.read_all(house.gateway.engine, subjects.QUIET_SUBJECTS, records.HeardMessage)
    return [kept.message.text async for _, kept in found]


async def remembers(house: House, *texts: str) -> None:
    """Wait until exactly these texts are remembered."""

    async def is_so() -> bool:
        return await list_heard(house) == list(texts)

    await until(is_so, f"that {texts} are remembered")


def get_last_question(house: House) -> str:
    """Return the last question to the model."""
    content: str = house.told("llm:before")[-1]["messages"][-1]["content"]
    return content


async def test_in_a_quiet_chat_who_calls_tells_what_was_said_before_and_nothing_else_is_answered(
    wire: Wire, tmp_path: Path
) -> None:
    async with housed(wire, tmp_path / "home", settings=admitting(wire)) as house:
        await make_quiet(house)
        await wire.write("the stranger's word", by=STRANGER, chat=GROUP)
        wrong = await wire.write("the word is melon", by=BEN, chat=GROUP)
        await remembers(house, "the word is melon")
        await wire.edit(wrong, "the word is mellon", by=BEN)
        await remembers(house, "the word is mellon")
        await wire.write("I knew that", chat=GROUP)
        await remembers(house, "the word is mellon", "I knew that")
        await wire.mention("what is it?")
        (shown,) = await house.shows("It is 42.")
        assert shown.chat == GROUP
        (received,) = [one for one in house.told("message:received") if "what is" in one["text"]]
        assert received["text"] == "what is it?"
        said = [(one["user_id"], one["text"]) for one in received["heard"]]
        assert said == [(wire.known_as(BEN), "the word is mellon"), (wire.known_as(ANN), "I knew that")]
        asked = get_last_question(house)
        assert f"({wire.known_as(BEN)}): the word is mellon\n" in asked
        assert asked.endswith("what is it?")
        assert "stranger" not in asked
        assert len(wire.shown) == 2
