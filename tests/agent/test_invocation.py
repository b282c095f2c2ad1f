"""The first and the last event of a turn: what a hook may change there, and what it decides."""

import pytest

from gateway.agent.operation import error_as_fields, error_from_fields
from gateway.errors import ModelError
from gateway.events import Deny, End, Retry
from gateway.messages.transcript import Entry


@pytest.mark.row("EDG-19")
@pytest.mark.row("STR-21")
async def test_the_persons_message_is_stored_and_sent_as_agent_start_leaves_it(stage):
    @stage.on("agent:start")
    def redact(event):
        event["message_full"] = event["message_full"].replace("1234", "****")

    result = await stage.play(stage.agent("ok"), "my code is 1234")
    assert result.entries[0] == Entry("user", "my code is ****")
    assert stage.sent().messages[-1].content == "my code is ****"


@pytest.mark.row("STR-20")
@pytest.mark.row("EDG-48")
async def test_the_history_that_agent_start_leaves_is_what_the_model_sees_and_nothing_of_it_is_stored(stage):
    @stage.on("agent:start")
    def compact(event):
        assert [message["content"] for message in event["messages"]] == ["a", "b"]
        event["messages"] = [{"role": "system", "content": "They said a and b."}]

    result = await stage.play(stage.agent("ok"), history=[Entry("user", "a"), Entry("assistant", "b")])
    assert stage.sent().system == "They said a and b."
    assert [entry.content for entry in stage.sent().messages] == ["hi"]
    assert [entry.content for entry in result.entries] == ["hi", "ok"]


async def test_context_is_added_to_the_message_for_the_model_alone(stage, call_weather, weather_tool):
    stage.on("agent:start")(lambda event: {"context": [*event["context"], "It is Monday."]})
    stage.on("agent:start")(lambda event: {"context": [*event["context"], "It rains."]})
    result = await stage.play(stage.agent(call_weather, "ok", tools=[weather_tool], instructions="You help."))
    for request in stage.model.requests:
        assert request.messages[0].content == "hi\n\nIt is Monday.\n\nIt rains."
        assert request.system == "You help."
    assert result.entries[0].content == "hi"


@pytest.mark.row("SHE-25")
async def test_the_configuration_of_a_run_can_be_changed(stage, call_weather, weather_tool):
    @stage.on("agent:start")
    def limit(event):
        event["config"] = {**event["config"], "max_hops": 1, "model": "larger", "temperature": 0.1}

    await stage.play(stage.agent("ok", call_weather, tools=[weather_tool]))
    assert stage.sent().tools == ()
    assert (stage.sent().name, dict(stage.sent().options)) == ("larger", {"temperature": 0.1})


@pytest.mark.row("STR-46")
async def test_a_result_at_agent_start_is_the_reply_without_a_model(stage):
    stage.on("agent:start")(lambda event: {"result": "canned"})
    result = await stage.play(stage.agent("never said"))
    assert (result.reply, result.status, result.stop) == ("canned", "ok", "result")
    assert not [name for name in stage.names if name.startswith("llm:")]
    assert [entry.content for entry in result.entries] == ["hi", "canned"]


@pytest.mark.row("STR-22")
@pytest.mark.row("EDG-19")
@pytest.mark.row("WEB-14")
@pytest.mark.row("WEB-15")
@pytest.mark.parametrize(("outcome", "status"), [(End("closed"), "ended"), (Deny("closed"), "denied")])
async def test_a_turn_can_be_refused_at_its_start_and_still_ends(stage, outcome, status):
    stage.on("agent:start")(lambda event: outcome)
    result = await stage.play(stage.agent("never said"))
    assert (result.reply, result.status, stage.model.requests) == ("closed", status, [])
    assert stage.names == ["agent:start", "message:add", "message:add", "agent:end"]
    assert stage.fields("agent:end")["stop"] == status


@pytest.mark.row("EDG-25")
@pytest.mark.row("SHE-26")
async def test_the_reply_is_sent_and_stored_as_agent_end_leaves_it(stage):
    @stage.on("agent:end")
    def sign(event):
        assert event["response"] == event["response_full"][:500]
        event["response_full"] += " -- M."

    result = await stage.play(stage.agent("Yours"))
    assert (result.reply, result.entries[-1].content) == ("Yours -- M.", "Yours -- M.")


@pytest.mark.row("STR-24")
async def test_a_retry_at_the_end_is_a_whole_new_turn_with_the_message_and_is_bounded(stage):
    @stage.on("agent:end")
    def go_on(event):
        return Retry("And now?") if "last" not in event["response"] else None

    result = await stage.play(stage.agent("first", "second", "last"))
    assert result.reply == "last"
    assert [entry.content for entry in result.entries] == ["hi", "first", "And now?", "second", "And now?", "last"]
    assert stage.names.count("agent:start") == stage.names.count("agent:end") == 3
    assert [entry.content for entry in stage.sent().messages] == ["hi", "first", "And now?", "second", "And now?"]
    stage.model = None
    result = await stage.play(stage.agent(*["again"] * 20))
    assert len(stage.model.requests) == 6


@pytest.mark.row("SHE-38")
async def test_the_error_of_a_turn_is_kept_consumed_or_replaced(stage):
    failing = {"error": {"kind": "auth"}}
    assert (await stage.play(stage.agent(failing))).status == "failed"
    stage.on("agent:end")(lambda event: {"error": "changed"})
    assert (await stage.play(stage.agent(failing))).error == "changed"
    stage.on("agent:end")(lambda event: {"error": None, "response_full": "Never mind."})
    result = await stage.play(stage.agent(failing))
    assert (result.status, result.error, result.reply) == ("ok", "", "Never mind.")
    assert result.entries[-1].content == "Never mind."


@pytest.mark.row("SHE-34")
def test_a_replaced_error_comes_from_the_old_one():
    old = ModelError("old", kind="rate")
    new = error_from_fields({"message": "new", "kind": "auth"}, old, error_as_fields(old))
    assert isinstance(new, ModelError)
    assert (str(new), new.kind, new.__cause__) == ("new", "auth", old)
    assert error_from_fields(error_as_fields(old), old, error_as_fields(old)) is old
    assert error_from_fields(None, old, error_as_fields(old)) is None
    assert str(error_from_fields(ValueError("mine"), old, error_as_fields(old))) == "mine"


@pytest.mark.row("STR-25")
@pytest.mark.row("WEB-26")
async def test_every_message_passes_before_it_is_stored(stage, call_weather, weather_tool):
    @stage.on("message:add")
    def stamp(event):
        event["message"] = {**event["message"], "content": f"[{event['message']['content']}]"}

    result = await stage.play(stage.agent(call_weather, "ok", tools=[weather_tool]))
    assert [entry.content for entry in result.entries] == ["[hi]", "[]", "[18 degrees in Paris]", "[ok]"]
    assert result.reply == "[ok]"


@pytest.mark.row("WEB-26")
@pytest.mark.row("WEB-44")
async def test_a_denied_message_is_replaced_and_never_dropped(stage, call_weather, weather_tool):
    @stage.on("message:add")
    def moderate(event):
        return Deny("[removed]") if event["message"]["role"] != "assistant" else None

    result = await stage.play(stage.agent(call_weather, "ok", tools=[weather_tool]))
    assert [(entry.role, entry.content) for entry in result.entries] == [
        ("user", "[removed]"),
        ("assistant", ""),
        ("tool", "[removed]"),
        ("assistant", "ok"),
    ]
    assert result.entries[2].call_id == "w1"
    assert stage.sent(0).messages[-1].content == "[removed]"


@pytest.mark.row("WEB-17")
@pytest.mark.row("WEB-44")
async def test_a_rate_limit_of_ones_own_refuses_with_its_own_words(stage):
    class RateLimit(Deny):
        text = "Ten messages an hour are enough."

    @stage.on("agent:start")
    def limit(event):
        used = event.session.get("used", 0) + 1
        event.session["used"] = used
        if used > 1:
            raise RateLimit

    assert (await stage.play(stage.agent("ok"))).reply == "ok"
    assert (await stage.play(stage.agent("ok"))).reply == "Ten messages an hour are enough."
