"""Anthropic's models in their own language: over a server that others wrote, and one that misbehaves to order."""

import json
import re

import pytest

from gateway.agent.models.anthropic import AnthropicModel
from gateway.agent.models.prices import TokenPrice
from gateway.messages.transcript import Entry, ToolCall, Usage


@pytest.fixture
async def model(endpoint):
    model = AnthropicModel(
        "claude", api_key="key", base_url=endpoint.url.removesuffix("/v1"), stall=1.0, price=TokenPrice(3, 15)
    )
    yield model
    await model.aclose()


@pytest.fixture
async def independent(independent_endpoint):
    model = AnthropicModel("claude-sonnet-4-5", api_key="key", base_url=independent_endpoint.removesuffix("/v1"))
    yield model
    await model.aclose()


def events(*texts, stop="end_turn", usage=(7, 3)):
    """The events of an answer as the API sends them."""
    begin = {"type": "message_start", "message": {"usage": {"input_tokens": usage[0], "output_tokens": 1}}}
    yield json.dumps(begin)
    yield json.dumps({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for text in texts:
        yield json.dumps({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
    yield json.dumps({"type": "content_block_stop", "index": 0})
    if stop:
        end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": usage[1]}}
        yield json.dumps(end)
        yield json.dumps({"type": "message_stop"})


@pytest.mark.process
async def test_a_tool_round_trip_over_an_independent_server(stage, independent, weather_tool):
    result = await stage.play(stage.agent(model=independent, tools=[weather_tool]), "weather in Paris?")
    assert [entry.content for entry in result.entries][1:] == ["", "18 degrees in Paris", "It is 18 C in Paris."]
    assert "".join(stage.streamed) == result.reply


@pytest.mark.process
@pytest.mark.parametrize(("text", "words"), [("limit", "Rate limited"), ("cut", "reached|cut off"), ("what?", "404")])
async def test_what_an_independent_server_refuses_or_breaks_off_is_an_error(stage, independent, text, words):
    result = await stage.play(stage.agent(model=independent), text)
    assert result.status == "failed"
    assert re.search(words, result.error)


async def test_text_usage_cost_and_headers(stage, endpoint, model):
    endpoint.stream(*events("Hel", "lo"))
    result = await stage.play(stage.agent(model=model, instructions="You help."))
    assert (result.reply, stage.streamed) == ("Hello", ["Hel", "lo"])
    assert result.usage == Usage(7, 3, 1, result.usage.cost, model.name)
    assert result.usage.cost == pytest.approx((7 * 3 + 3 * 15) / 1e6)
    head, body = endpoint.requests[0]
    assert head.startswith("POST /v1/messages")
    assert re.search("(x-api-key: |bearer )key", head.lower())  # as the library likes it
    assert body["system"][0]["text"] == "You help."
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]


async def test_the_transcript_is_put_as_the_api_wants_it(stage, endpoint, model):
    """Results of a batch stand in one message, with what the person says after them; nothing empty is sent."""
    endpoint.stream(*events("ok"))
    calls = (ToolCall("a", "weather", {"city": "Rome"}), ToolCall("b", "weather", {"city": "Bern"}))
    history = [
        Entry("user", "both?"),
        Entry("assistant", "", calls),
        Entry("tool", "18", call_id="a", name="weather"),
        Entry("tool", "no line", call_id="b", name="weather", error=True),
    ]
    await stage.play(stage.agent(model=model), "and now?", history=history)
    said, called, answered = endpoint.requests[0][1]["messages"]
    assert [part["role"] for part in (said, called, answered)] == ["user", "assistant", "user"]
    assert [block["type"] for block in called["content"]] == ["tool_use", "tool_use"]
    results = answered["content"]
    assert [block["type"] for block in results] == ["tool_result", "tool_result", "text"]
    assert (results[0]["tool_use_id"], results[1]["is_error"]) == ("a", True)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (401, {"type": "authentication_error", "message": "invalid x-api-key"}, "auth"),
        (429, {"type": "rate_limit_error", "message": "slow down"}, "rate"),
        (529, {"type": "overloaded_error", "message": "Overloaded"}, "overload"),
        (400, {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens"}, "context"),
        (404, {"type": "not_found_error", "message": "model: nope"}, "missing"),
    ],
)
async def test_every_refusal_has_its_kind_and_the_endpoints_words(stage, endpoint, model, status, error, kind):
    endpoint.answer(status, json.dumps({"type": "error", "error": error}).encode())
    await stage.play(stage.agent(model=model))
    told = stage.fields("llm:after")["error"]
    assert (told["kind"], error["message"] in told["message"]) == (kind, True)


async def test_an_error_inside_a_stream_is_an_error(stage, endpoint, model):
    wrong = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    endpoint.stream(*list(events("half "))[:3], json.dumps(wrong))
    await stage.play(stage.agent(model=model))
    assert stage.fields("llm:after")["error"]["kind"] == "overload"
    assert stage.fields("llm:after")["content"] == "half "


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        (list(events("half ", stop="")), "network"),
        (["{broken"], "response"),
        (list(events("no", stop="refusal")), "filter"),
    ],
)
async def test_what_ends_too_early_is_no_answer_or_is_refused_is_an_error(stage, endpoint, model, pieces, kind):
    endpoint.stream(*pieces)
    await stage.play(stage.agent(model=model))
    assert stage.fields("llm:after")["error"]["kind"] == kind


async def test_a_stall_is_given_up(stage, endpoint, model):
    model.stall = 0.1
    endpoint.answers.append(b"stall")
    await stage.play(stage.agent(model=model))
    assert stage.fields("llm:after")["error"]["kind"] == "timeout"


def test_a_key_is_never_in_a_repr():
    assert "hidden" not in repr(AnthropicModel("claude", api_key="hidden"))
