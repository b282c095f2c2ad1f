"""Before the model's window is full the older part of a conversation becomes a summary, which stays."""

import pytest

from gateway.agent import tool
from gateway.messages.transcript import Entry, ToolCall


def talk(count, size=100):
    return [Entry("user" if n % 2 == 0 else "assistant", f"m{n} " + "x" * size) for n in range(count)]


@pytest.mark.row("WEB-50")
async def test_a_conversation_that_fits_is_left_alone(stage):
    await stage.play(stage.agent("ok", context_window=10_000), history=talk(20))
    assert (len(stage.model.requests), len(stage.sent().messages), stage.session) == (1, 21, {})


@pytest.mark.row("WEB-50")
@pytest.mark.row("STR-84")
async def test_one_that_does_not_is_summed_up_after_the_hooks_and_before_the_call(stage):
    seen = []
    stage.on("llm:before")(lambda event: seen.append(len(event["messages"])))
    agent = stage.agent("They said m0 to m14.", "ok", context_window=600, instructions="You help.")
    result = await stage.play(agent, history=talk(21))
    assert (result.reply, seen) == ("ok", [22])
    summing, answering = stage.model.requests
    assert "Sum up" in summing.system
    assert summing.messages[0].content.startswith("user: m0")
    assert answering.system == "You help.\nEarlier in this conversation: They said m0 to m14."
    assert [entry.content[:3] for entry in answering.messages] == ["m15", "m16", "m17", "m18", "m19", "m20", "hi"]
    assert stage.session["summary"]["upto"] == 15
    assert stage.fields("session:compress")["compression_count"] == 1
    assert [entry.content for entry in result.entries] == ["hi", "ok"]


async def test_the_summary_stands_in_later_turns_and_grows(stage):
    history = talk(21)
    await stage.play(stage.agent("First summary.", "ok", context_window=600), history=history)
    history += [Entry("user", "hi"), Entry("assistant", "ok")]
    await stage.play(stage.agent("ok", context_window=600), history=history)
    assert len(stage.model.requests) == 1
    assert stage.sent().system == "Earlier in this conversation: First summary."
    assert stage.sent().messages[0].content.startswith("m15")
    history += talk(14)
    await stage.play(stage.agent("Second summary.", "ok", context_window=600), history=history)
    assert stage.model.requests[0].messages[0].content.startswith("First summary.\nassistant: m15")
    assert stage.sent().system == "Earlier in this conversation: Second summary."
    assert stage.session["summary"] == {"upto": len(history) - 6, "text": "Second summary.", "times": 2}


async def test_a_summary_of_more_than_there_is_left_is_forgotten(stage):
    stage.session["summary"] = {"upto": 10, "text": "gone", "times": 1}
    await stage.play(stage.agent("ok", context_window=600), history=talk(4))
    assert (stage.sent().system, len(stage.sent().messages)) == ("", 5)


async def test_without_a_summary_the_older_part_is_left_out_and_says_so(stage):
    failing = {"error": {"kind": "overload"}}
    result = await stage.play(stage.agent(failing, "ok", context_window=600), history=talk(21))
    assert result.reply == "ok"
    assert "left out" in stage.sent().system


async def test_a_result_stays_with_its_call(stage):
    call = Entry("assistant", "", (ToolCall("a", "look", {}),))
    found = [Entry("tool", "r" * 300, call_id="a", name="look")]
    history = [*talk(14, 60), call, *found, *talk(5, 60)]
    await stage.play(stage.agent("Summary.", "ok", context_window=600), history=history)
    assert stage.sent().messages[0].role != "tool"


async def test_results_of_this_turn_that_do_not_fit_lose_their_text_oldest_first(stage):
    @tool(repeatable=True)
    async def read(name: str) -> str:
        """Read much."""
        return name * 1000

    turns = [{"tool_calls": [{"name": "read", "args": {"name": name}}]} for name in "abc"]
    result = await stage.play(stage.agent(*turns, "ok", tools=[read], context_window=1000))
    texts = [entry.content for entry in stage.sent().messages if entry.role == "tool"]
    assert ["left out" in text for text in texts] == [True, False, False]
    assert [len(entry.content) for entry in result.entries if entry.role == "tool"] == [1000, 1000, 1000]
