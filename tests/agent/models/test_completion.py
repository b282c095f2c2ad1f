"""Pieces of a stream, in all the ways that servers cut and vary them, become one answer."""

import json

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent import ModelRequest
from gateway.agent.models.http_model import limit_stream, read_sse, read_whole
from gateway.agent.models.openai import CompletionAccumulator, OpenAIModel
from gateway.agent.models.prices import TokenPrice
from gateway.errors import ModelError
from gateway.messages.transcript import Entry, ToolCall


def assembled(*pieces, price=None):
    answer = CompletionAccumulator(price or TokenPrice())
    return "".join(answer.add(json.dumps(piece).encode()) for piece in pieces), answer


def delta(finish=None, **fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(index, id_=None, name=None, arguments=None):
    return {"index": index, "id": id_, "function": {"name": name, "arguments": arguments}}


def events_in(*pieces):
    async def read():
        async def sent():
            for piece in pieces:
                yield piece

        return [event async for event in read_sse(sent())]

    return anyio.run(read)


@given(st.data())
def test_events_are_the_same_however_the_bytes_are_cut(data):
    wire = b': ping\r\ndata: {"a":1}\r\n\r\nevent: x\ndata:two\ndata: lines\n\ndata: [DONE]\n\n'
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=6)))
    pieces = [wire[start:end] for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    assert events_in(*pieces) == [b'{"a":1}', b"two\nlines", b"[DONE]"]


def test_an_event_without_its_end_is_not_lost():
    assert events_in(b"data: one\n\ndata: tw") == [b"one", b"tw"]


def test_a_line_without_end_is_refused():
    with pytest.raises(ValueError, match="no end"):
        events_in(b"x" * 16_000_001)


@pytest.mark.parametrize("read", [read_whole, read_sse])
def test_an_answer_without_end_is_given_up_before_it_fills_the_memory(read):
    given = 0

    async def sent():
        nonlocal given
        while True:
            given += 1 << 16
            yield b"data:1\n" * (1 << 13)

    async def take():
        async for _ in read(sent()):
            pass

    with pytest.raises(ValueError, match="no end"):
        anyio.run(take)
    assert given < 20_000_000


@pytest.mark.timeout(120)  # a hundred megabytes, piece by piece
def test_a_stream_without_end_is_given_up():
    async def sent():
        while True:
            yield b"data: 1\n\n" * (1 << 14)

    async def take():
        async for _ in read_sse(limit_stream(sent())):
            pass

    with pytest.raises(ValueError, match="100 MB, and no end"):
        anyio.run(take)


def test_text_calls_usage_and_cost_are_put_together():
    text, answer = assembled(
        delta(role="assistant", content=None),
        delta(content="Hel"),
        delta(content="lo"),
        delta(tool_calls=[call(0, "a", "weather", "")]),
        delta(tool_calls=[call(0, None, None, '{"city":')]),
        delta(tool_calls=[call(1, "b", "time", None), call(0, None, None, '"Paris"}')]),
        delta("tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 500_000}},
        price=TokenPrice(2.0, 8.0),
    )
    assert text == "Hello"
    assert answer.calls() == (ToolCall("a", "weather", {"city": "Paris"}), ToolCall("b", "time", {}))
    assert (answer.usage.input_tokens, answer.usage.cost, answer.stop) == (1_000_000, 6.0, "tool_calls")


def test_servers_that_do_not_number_calls_or_send_objects_are_understood():
    _, answer = assembled(
        delta(tool_calls=[{"id": "a", "function": {"name": "x", "arguments": {"n": 1}}}]),
        delta(tool_calls=[{"id": "b", "function": {"name": "y", "arguments": "{}"}}]),
    )
    assert answer.calls() == (ToolCall("a", "x", {"n": 1}), ToolCall("b", "y", {}))


@pytest.mark.parametrize("arguments", ["{broken", "[1]", '"text"'])
def test_arguments_that_are_no_object_are_kept_as_they_were_written(arguments):
    _, answer = assembled(delta(tool_calls=[call(0, "a", "x", arguments)]))
    assert answer.calls()[0].args == {"__raw__": arguments}


def test_a_whole_answer_is_read_where_a_server_does_not_stream():
    text, answer = assembled({"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]})
    assert (text, answer.stop) == ("whole", "stop")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"<html>", "response"),
        (b'{"choices": 7}', "response"),
        (b'{"error": {"message": "slow down", "type": "rate_limit_error"}}', "rate"),
        (b'{"error": "upstream died"}', "overload"),
    ],
)
def test_what_is_no_piece_is_an_error_of_its_kind(data, kind):
    with pytest.raises(ModelError) as caught:
        CompletionAccumulator().add(data)
    assert caught.value.kind == kind


def test_a_transcript_becomes_the_messages_of_the_endpoint(weather_tool):
    request = ModelRequest(
        (
            Entry("user", "hi"),
            Entry("assistant", "", (ToolCall("a", "weather", {"city": "Paris"}),)),
            Entry("tool", "warm", call_id="a", name="weather"),
        ),
        "You help.",
        (weather_tool.spec,),
        options={"temperature": 0.5, "invented": 1},
    )
    body = json.loads(OpenAIModel("gpt", extra={"user": "u"}).encode_request(request, {}))
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert body["messages"][2]["tool_calls"][0]["function"]["arguments"] == '{"city":"Paris"}'
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "a", "content": "warm"}
    assert body["tools"][0]["function"]["parameters"]["required"] == ["city"]
    assert (body["temperature"], body["user"], body["stream_options"]) == (0.5, "u", {"include_usage": True})
    assert "invented" not in body
