"""The changes that hooks may make around a model call, and their effects."""

import pytest

from gateway.agent import ModelRequest, TurnLimits, tool
from gateway.agent.model import estimate_tokens
from gateway.events import Deny, End, Retry
from gateway.messages.transcript import Entry, ToolCall


@pytest.mark.row("SHE-9")
@pytest.mark.row("EDG-20")
@pytest.mark.row("WEB-18")
@pytest.mark.row("STR-84")
async def test_system_messages_tools_and_model_are_sent_as_the_hooks_leave_them(stage, weather_tool):
    @stage.on("llm:before")
    def rewrite(event):
        assert event["tokens"] > 0
        event["system"] = event["system"] + "\nBe brief."
        event["messages"] = [{"role": "system", "content": "And kind."}, *event["messages"][-1:]]
        event["tools"] = []
        event["model"] = "larger"

    agent = stage.agent("ok", tools=[weather_tool], instructions="You help.")
    await stage.play(agent, history=[Entry("user", "old"), Entry("assistant", "answer")])
    sent = stage.sent()
    assert sent.system == "You help.\nBe brief.\nAnd kind."
    assert [entry.content for entry in sent.messages] == ["hi"]
    assert (sent.tools, sent.name) == ((), "larger")


@pytest.mark.row("SHE-9")
async def test_system_messages_of_the_transcript_join_the_system_prompt_and_an_emptied_one_sends_none(stage):
    @stage.on("llm:before")
    def empty(event):
        assert event["system"] == "You help.\nNote."
        assert all(message["role"] != "system" for message in event["messages"])
        event["system"] = ""

    agent = stage.agent("ok", instructions="You help.")
    await stage.play(agent, history=[Entry("system", "Note.")])
    assert stage.sent().system == ""


@pytest.mark.row("EDG-20")
async def test_what_llm_before_changes_holds_for_this_call_alone(stage, call_weather, weather_tool):
    @stage.on("llm:before")
    def add_once(event):
        if event["hop"] == 0:
            event["messages"] = [*event["messages"], {"role": "user", "content": "psst"}]

    result = await stage.play(stage.agent(call_weather, "ok", tools=[weather_tool]))
    assert [entry.content for entry in stage.sent(0).messages] == ["hi", "psst"]
    assert "psst" not in [entry.content for entry in (*stage.sent(1).messages, *result.entries)]


@pytest.mark.row("SHE-10")
@pytest.mark.row("EDG-21")
@pytest.mark.row("WEB-19")
async def test_the_answer_is_stored_and_sent_as_llm_after_leaves_it(stage):
    @stage.on("llm:after")
    def redact(event):
        event["content"] = event["content"].replace("1234", "****")

    result = await stage.play(stage.agent("The code is 1234."))
    assert result.reply == "The code is ****."
    assert result.entries[-1] == Entry("assistant", "The code is ****.")
    assert stage.steps[-1].entry == result.entries[-1]


@pytest.mark.row("EDG-21")
async def test_emptied_tool_calls_make_an_answer_final(stage, weather_tool, call_weather):
    @stage.on("llm:after")
    def no_tools(event):
        event["tool_calls"] = []

    result = await stage.play(stage.agent({**call_weather, "text": "I will look."}, tools=[weather_tool]))
    assert (result.reply, stage.names.count("tool:before")) == ("I will look.", 0)


@pytest.mark.row("STR-28")
@pytest.mark.row("STR-27")
async def test_a_denied_call_puts_its_text_in_the_models_place_and_ends_the_turn(stage):
    @stage.on("llm:before")
    def deny(event):
        return Deny("Out of budget.")

    result = await stage.play(stage.agent("never said"))
    assert (result.reply, result.status) == ("Out of budget.", "denied")
    assert stage.model.requests == []
    assert stage.fields("llm:after")["content"] == "Out of budget."


async def test_soft_denials_are_joined(stage):
    stage.on("llm:before")(lambda event: Deny("One.", soft=True))
    stage.on("llm:before")(lambda event: Deny("Two.", soft=True))
    assert (await stage.play(stage.agent("never said"))).reply == "One.\nTwo."


@pytest.mark.row("EDG-5")
@pytest.mark.row("EDG-20")
@pytest.mark.row("EDG-26")
@pytest.mark.row("EDG-28")
@pytest.mark.row("EDG-68")
async def test_an_end_skips_the_model_and_is_told_with_its_reason(stage):
    stage.on("llm:before")(lambda event: End("cached", "cache hit"))
    result = await stage.play(stage.agent("never said"))
    assert (result.reply, result.status, result.hook_ended) == ("cached", "ended", "cache hit")
    assert stage.fields("agent:end")["hook_ended"] == "cache hit"
    assert result.entries[-1] == Entry("assistant", "cached")


@pytest.mark.row("EDG-26")
@pytest.mark.row("EDG-27")
async def test_an_end_without_words_names_its_point_and_keeps_the_models_text(stage):
    stage.on("llm:after")(lambda event: End())
    result = await stage.play(stage.agent("the model's own"))
    assert (result.reply, result.hook_ended) == ("the model's own", "ended at llm:after")


async def test_a_result_given_before_the_call_is_used_and_still_passes_llm_after(stage):
    @stage.on("llm:before")
    def cached(event):
        event["result"] = {"content": "from the cache"}

    stage.on("llm:after")(lambda event: {"content": event["content"] + "!"})
    result = await stage.play(stage.agent("never said"))
    assert (result.reply, stage.model.requests) == ("from the cache!", [])


@pytest.mark.row("STR-30")
@pytest.mark.row("STR-32")
@pytest.mark.row("STR-68")
async def test_a_retry_discards_the_answer_and_asks_again_with_the_message(stage):
    discarded = []

    @stage.on("llm:after")
    def again(event):
        if "please" not in event["content"]:
            return Retry("Say please.")
        return None

    result = await stage.play(stage.agent("Give.", "Give, please."), discard=lambda: discarded.append(1))
    assert result.reply == "Give, please."
    assert [entry.content for entry in result.entries] == ["hi", "Say please.", "Give, please."]
    assert stage.names.count("llm:before") == 2
    assert "".join(stage.streamed) == "Give.Give, please."
    assert discarded == [1]


@pytest.mark.row("STR-29")
@pytest.mark.row("STR-31")
async def test_a_retry_after_an_error_tries_again_and_is_bounded(stage):
    @stage.on("llm:after")
    def again(event):
        return Retry() if event["error"] else None

    failing = {"error": {"kind": "overload"}}
    assert (await stage.play(stage.agent(failing, failing, "at last"))).reply == "at last"
    result = await stage.play(stage.agent(*[failing] * 20))
    assert (result.status, len(stage.model.requests)) == ("failed", 6)


@pytest.mark.row("STR-33")
async def test_of_several_retries_the_last_one_counts(stage):
    stage.on("llm:after", order=1)(lambda event: Retry("first") if event["content"] == "no" else None)
    stage.on("llm:after", order=2)(lambda event: Retry("second") if event["content"] == "no" else None)
    result = await stage.play(stage.agent("no", "yes"))
    assert [entry.content for entry in result.entries] == ["hi", "second", "yes"]


@pytest.mark.row("SHE-32")
@pytest.mark.row("SHE-33")
@pytest.mark.row("SHE-34")
@pytest.mark.row("SHE-35")
async def test_an_error_is_left_consumed_or_replaced_by_hooks_in_a_chain(stage):
    failing = {"text": "half ", "error": {"kind": "network", "message": "cut"}}
    assert (await stage.play(stage.agent(failing))).error == "cut"

    @stage.on("llm:after", order=1)
    def replace(event):
        event["error"] = {"message": "the line is dead", "kind": "timeout"}

    result = await stage.play(stage.agent(failing))
    assert result.error == "the line is dead"
    assert "took too long" in result.reply

    @stage.on("llm:after", order=2)
    def consume(event):
        assert event["error"]["message"] == "the line is dead"
        event["error"] = None

    result = await stage.play(stage.agent(failing))
    assert (result.status, result.reply) == ("ok", "half ")


@pytest.mark.row("WEB-20")
@pytest.mark.row("WEB-21")
@pytest.mark.row("WEB-44")
async def test_each_chunk_is_streamed_and_stored_as_the_hooks_leave_it(stage):
    @stage.on("llm:chunk")
    def censor(event):
        seen = event.turn.setdefault("seen", [])
        seen.append(event["index"])
        assert event["text"] == "".join(stage.streamed)
        if "bad" in event["chunk"]:
            return {"chunk": "*** "}
        if "drop" in event["chunk"]:
            event["chunk"] = None
        return None

    result = await stage.play(stage.agent({"chunks": ["a ", "bad ", "drop ", "word"]}))
    assert result.reply == result.entries[-1].content == "".join(stage.streamed) == "a *** word"
    assert stage.scope.bags.turn["seen"] == [0, 1, 2, 3]


async def test_an_end_in_the_middle_of_a_stream_stops_the_model(stage):
    stage.on("llm:chunk")(lambda event: End("Let us stop.", "moderation") if "bad" in event["chunk"] else None)
    result = await stage.play(stage.agent("good bad worse"))
    assert "".join(stage.streamed) == "good "
    assert (result.reply, result.hook_ended) == ("Let us stop.", "moderation")


async def test_a_denied_chunk_is_dropped(stage):
    stage.on("llm:chunk")(lambda event: Deny() if "bad" in event["chunk"] else None)
    assert (await stage.play(stage.agent("good bad worse"))).reply == "good worse"


@pytest.mark.row("WEB-49")
async def test_usage_is_summed_over_the_turn_and_told_at_its_end(stage, call_weather, weather_tool):
    usage = {"input_tokens": 10, "output_tokens": 5, "cost": 0.5}
    agent = stage.agent({**call_weather, "usage": usage}, {"text": "ok", "usage": usage}, tools=[weather_tool])
    result = await stage.play(agent)
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.calls) == (20, 10, 2)
    assert stage.fields("agent:end")["usage"]["cost"] == 1.0


@pytest.mark.row("STR-83")
async def test_calls_get_ids_of_their_own_however_the_model_numbers_them(stage, weather_tool):
    same = {"tool_calls": [{"name": "weather", "args": {"city": "Rome"}, "id": "x"}]}
    result = await stage.play(stage.agent(same, same, "ok", tools=[weather_tool]))
    ids = [call.id for entry in result.entries for call in entry.tool_calls]
    assert len(set(ids)) == 2
    assert [entry.call_id for entry in result.entries if entry.role == "tool"] == ids


async def test_a_hook_that_leaves_nonsense_changes_nothing(stage, call_weather, weather_tool):
    @stage.on("llm:before")
    def spoil(event):
        event["messages"] = [{"role": "nobody"}]

    @stage.on("llm:after")
    def spoil_calls(event):
        event["tool_calls"] = [42]

    @stage.on("message:add")
    def spoil_message(event):
        event["message"] = {"role": 7}

    result = await stage.play(stage.agent(call_weather, call_weather, "ok", tools=[weather_tool]))
    assert [entry.content for entry in result.entries[:1]] == ["hi"]
    assert stage.sent(0).messages[0].content == "hi"
    assert result.entries[1].tool_calls == (ToolCall("w1", "weather", {"city": "Paris"}),)


@pytest.mark.row("EDG-33")
@pytest.mark.row("WEB-47")
@pytest.mark.row("STR-83")
async def test_at_its_last_hop_the_model_gets_no_tools_and_then_the_person_is_told(stage, call_weather, weather_tool):

    agent = stage.agent(*[call_weather] * 5, tools=[weather_tool], limits=TurnLimits(hops=3))
    result = await stage.play(agent)
    assert [len(request.tools) for request in stage.model.requests] == [1, 1, 0]
    assert "within 3 steps" in result.reply
    assert (result.stop, stage.fields("agent:end")["stop"]) == ("hops", "hops")


async def test_a_turn_ends_when_it_has_used_its_tokens(stage, call_weather, weather_tool):

    dear = {**call_weather, "usage": {"input_tokens": 900, "output_tokens": 200}}
    agent = stage.agent(dear, "never said", tools=[weather_tool], limits=TurnLimits(tokens=1000))
    result = await stage.play(agent)
    assert (result.stop, result.entries[-1].content) == ("tokens", result.reply)


async def test_a_turn_ends_when_its_time_is_over(stage):

    agent = stage.agent({"text": "one two three", "delay": 0.04}, limits=TurnLimits(seconds=0.06))
    result = await stage.play(agent)
    assert (result.stop, result.status) == ("seconds", "failed")
    assert result.reply.startswith("one")
    assert "longer than 0.06 seconds" in result.reply


@tool(repeatable=True)
async def noop() -> str:
    """Do nothing."""
    return "done"


def test_the_estimate_grows_with_the_request():

    small = ModelRequest((Entry("user", "hi"),))
    large = ModelRequest((Entry("user", "hi" * 500),), "system", (noop.spec,))
    assert 0 <= estimate_tokens(small) < estimate_tokens(large)


@pytest.mark.row("WEB-47")
async def test_the_same_call_with_the_same_result_three_times_is_the_last_one(stage, call_weather, weather_tool):
    await stage.play(stage.agent(*[call_weather] * 3, "I give up.", tools=[weather_tool]))
    assert [len(request.tools) for request in stage.model.requests] == [1, 1, 1, 0]
    assert stage.fields("agent:end")["stop"] == "loop"
    result = await stage.play(stage.agent(*[call_weather] * 9, tools=[weather_tool]))
    assert (len(stage.model.requests), result.stop) == (4, "loop")
    assert "again and again" in result.reply


@pytest.mark.row("WEB-46")
async def test_text_before_a_tool_call_goes_out_at_once(stage, call_weather, weather_tool):
    streamed_before = []
    stage.on("tool:before")(lambda event: streamed_before.append("".join(stage.streamed)))
    await stage.play(stage.agent({**call_weather, "text": "Let me look."}, "ok", tools=[weather_tool]))
    assert streamed_before == ["Let me look."]


@pytest.mark.row("WEB-16")
async def test_a_hook_that_fails_is_passed_over_and_the_next_one_runs(stage, call_weather, weather_tool):
    for name in ("agent:start", "llm:before", "llm:after", "tool:before", "tool:after", "message:add", "agent:end"):

        @stage.on(name, on_error="skip")
        def broken(event):
            raise RuntimeError("broken")

        stage.on(name)(lambda event: event.turn.setdefault("seen", set()).add(event.name))

    result = await stage.play(stage.agent(call_weather, "ok", tools=[weather_tool]))
    assert (result.reply, result.status, len(stage.scope.bags.turn["seen"])) == ("ok", "ok", 7)
