"""Tools that send a message: before the turn is done, and to other chats."""

from typing import Any

from gateway.agent.toolbox.chat import make_chat_tools
from gateway.dispatcher.context import GatewayFacts, PlatformInfo
from gateway.messages.message import Address
from gateway.records import subjects
from tests.dispatcher.room import chat
from tests.spine import until


def calling(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "args": args}]}


async def test_a_word_comes_before_the_answer_and_once() -> None:
    turn = {"user": "work", "answers": [calling("send_message", text="a moment, please"), {"text": "done"}]}
    async with chat(turn, tools=make_chat_tools()) as room:
        await room.write("work")
        assert [await room.hear(1), await room.hear(2)] == ["a moment, please", "done"]


async def test_a_message_elsewhere_goes_when_the_person_agrees() -> None:
    call = calling("send_message", text="hello there", to="net:kitchen")
    async with chat({"user": "tell", "answers": [call, {"text": "told"}]}, tools=make_chat_tools()) as room:
        await room.write("tell the kitchen")
        question = await room.hear(1)
        assert question.startswith("May I run send_message?")
        assert "net:kitchen" in question
        await until(room.is_asked)
        await room.write("yes")
        await until(lambda: "told" in [reply.text for reply in room.net.sent])
        (there,) = [reply for reply in room.net.sent if reply.text == "hello there"]
        assert there.address == Address("net", "kitchen")


async def test_a_network_that_is_not_served_is_named_to_the_model_and_nothing_is_owed_to_it() -> None:
    turn = {"user": "tell", "answers": [calling("send_message", text="hello", to="pigeon:roof"), {"text": "I tried"}]}
    about = GatewayFacts(networks=(PlatformInfo("slack", served=True), PlatformInfo("pigeon", served=False)))
    async with chat(turn, tools=make_chat_tools(), about=lambda: about) as room:
        await room.write("tell the roof")
        await room.hear(1)
        await until(room.is_asked)
        await room.write("yes")
        await until(lambda: "I tried" in [reply.text for reply in room.net.sent])
        after = (await room.told("tool:after"))[-1]
        assert "'pigeon' is not served here; served: net, slack" in str(after["error"])
        assert (
            await room.house.engine.read(subjects.reply_pattern_of_place(subjects.place_of(Address("pigeon", "roof"))))
            == []
        )
