"""Several messages that one turn answers: each has its own event, and a hook can take words out of it."""

from typing import Any

from gateway.access.rules import AccessRules
from gateway.hooks import Deny, End
from gateway.messages.message import Address
from tests.dispatcher.room import KEY, Chat, chat
from tests.spine import until

SLOW = {"user": "slow", "answers": [{"chunks": ["slow", " answer"], "delay": 0.04}]}


async def write_together(room: Chat, *texts: str) -> None:
    """Have these wait behind a turn, and be answered by the next one."""
    await room.write("slow")
    await until(lambda: room.dispatcher.lanes.running == 1)
    for text in texts:
        await room.write(text)
    assert await room.hear() == "slow answer"


async def asked(room: Chat) -> list[str]:
    return [entry.content for entry in (await room.house.sessions.open(KEY)).entries if entry.role == "user"]


async def test_messages_that_one_turn_answers_are_told_of_one_by_one_before_it() -> None:
    async with chat(SLOW, "all three") as room:
        await write_together(room, "one", "two", "three")
        assert await room.hear(2) == "all three"
        told = await room.told("message:received")
        assert [(one["text"], one["message_id"]) for one in told[1:]] == [("one", "2"), ("two", "3"), ("three", "4")]
        assert len({one["turn_id"] for one in told[1:]}) == 1
        assert len({one["id"] for one in told}) == 4
        last = max(number for number, (name, _) in enumerate(room.events) if name == "message:received")
        starts = [number for number, (name, _) in enumerate(room.events) if name == "agent:start"]
        assert (len(starts), last < starts[1]) == (2, True)
        assert await asked(room) == ["slow", "one\n\ntwo\n\nthree"]


async def test_what_hooks_change_or_refuse_of_several_messages_is_that_message_alone() -> None:
    outcomes: dict[str, Any] = {"one": Deny("not that"), "two": {"text": "TWO"}, "three": End("here", "known")}
    async with chat(SLOW, "the rest") as room:
        room.hooks.on("message:received", lambda event: outcomes.get(event["text"]))
        await write_together(room, "one", "two", "three", "four")
        await room.hear(4)
        said = [(reply.text, reply.reply_to) for reply in room.net.sent[1:]]
        assert said == [("not that", "2"), ("here", "4"), ("the rest", "5")]
        assert await asked(room) == ["slow", "TWO\n\nfour"]
        assert len(await room.told("message:received")) == 5


async def test_of_several_messages_that_are_all_refused_nothing_reaches_the_agent() -> None:
    async with chat(SLOW, "never said") as room:
        room.hooks.on("message:received", lambda event: Deny() if event["text"] != "slow" else None)
        await write_together(room, "one", "two")
        assert [await room.hear(2), await room.hear(3)] == ["This was refused."] * 2
        assert len(await room.told("agent:start")) == 1
        assert await asked(room) == ["slow"]


async def test_a_hook_that_asks_about_one_of_several_gets_its_answer_for_that_one() -> None:
    async with chat(SLOW, "done") as room:
        answers: list[Any] = []

        @room.hooks.on("message:received")
        def ask(event: Any) -> Any:
            if event["text"] in ("one", "two"):
                answers.append((event["text"], said := event.ask(f"{event['text']}?")))
                return None if said == "sure" else Deny("left out")
            return None

        await write_together(room, "one", "two")
        assert "one?" in await room.hear(2)
        await room.write("sure")
        assert "two?" in await room.hear(3)
        await room.write("never")
        assert [await room.hear(4), await room.hear(5)] == ["left out", "done"]
        assert answers[-2:] == [("one", "sure"), ("two", "never")]
        assert await asked(room) == ["slow", "one"]


async def test_a_code_is_approved_in_direct_messages_alone() -> None:
    async with chat() as room:
        rules = AccessRules("ignore", 30, admins={"net": frozenset({"1"})})
        room.house.access.rules = rules
        group = Address("net", "room2", "group")
        told = await room.write("/pairing approve ABCDEFGH", user="1", address=group)
        assert "hermes-gateway pairing approve" in (told.settled or "")
        assert "direct message" in (told.settled or "")
        alone = await room.write("/pairing approve ABCDEFGH", user="1")
        assert (alone.settled or "").startswith("The code was not found")
        await room.hear(2)
