"""Any OpenAI-compatible endpoint: a real one that others wrote, and one that does all that endpoints do wrong."""

import json
import re
import socket
import time

import httpcore
import pytest

from gateway.agent.models.endpoint_client import as_model_errors
from gateway.agent.models.fallback import FallbackModel, RetryPolicy
from gateway.agent.models.openai import OpenAIModel
from gateway.backoff import Backoff
from gateway.errors import ModelError
from gateway.messages.transcript import Usage
from tests.agent.models.conftest import ENDLESS

ROUNDS = 3  # the machine may stand still, but not in each of them


@pytest.fixture
async def model(endpoint):
    model = OpenAIModel("gpt", api_key="key", base_url=endpoint.url, stall=1.0)
    yield model
    await model.aclose()


@pytest.fixture
async def independent(independent_endpoint):
    model = OpenAIModel("gpt-4o", api_key="key", base_url=independent_endpoint)
    yield model
    await model.aclose()


def said(text, finish=None):
    return json.dumps({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})


@pytest.mark.process
async def test_a_tool_round_trip_over_an_independent_server(stage, independent, weather_tool):
    result = await stage.play(stage.agent(model=independent, tools=[weather_tool]), "weather in Paris?")
    assert result.reply == "It is 18 C in Paris."
    assert [entry.content for entry in result.entries] == [
        "weather in Paris?",
        "",
        "18 degrees in Paris",
        "It is 18 C in Paris.",
    ]
    assert result.usage.calls == 2
    assert "".join(stage.streamed) == result.reply


@pytest.mark.process
async def test_a_slow_stream_comes_piece_by_piece(stage, independent):
    times, took = list[float](), list[float]()

    @stage.on("llm:chunk")
    def note(event):
        times.append(time.monotonic())

    while not took or (max(took) <= 0.06 and len(took) < ROUNDS):
        times.clear()
        result = await stage.play(stage.agent(model=independent), "slow please")
        assert result.reply == "one two three"
        assert len(times) == 4
        took.append(times[-1] - times[0])
    assert max(took) > 0.06


@pytest.mark.process
async def test_a_slow_stream_can_be_stopped(stage, independent):
    ports = stage.ports()
    stage.on("llm:chunk")(lambda event: ports.stop.cancel())
    result = await stage.play(stage.agent(model=independent), "endless please", stop=ports.stop)
    assert result.status == "interrupted"
    assert 0 < len(result.reply) < len(ENDLESS)
    assert ENDLESS.startswith(result.reply)


@pytest.mark.process
@pytest.mark.parametrize(("text", "words"), [("limit", "Rate limited"), ("cut", "reached|cut off"), ("what?", "404")])
async def test_what_it_refuses_or_breaks_off_is_an_error_with_an_apology(stage, independent, text, words):
    result = await stage.play(stage.agent(model=independent), text)
    assert result.status == "failed"
    assert re.search(words, result.error)
    assert result.reply.endswith(".")


@pytest.mark.process
@pytest.mark.parametrize(("text", "kind"), [("stall", "timeout"), ("garbage", "response")])
async def test_a_stall_of_a_minute_and_what_is_no_json_are_errors_in_time(stage, independent, text, kind):
    independent.stall = 0.3
    result = await stage.play(stage.agent(model=independent), text)
    assert (result.status, stage.fields("llm:after")["error"]["kind"]) == ("failed", kind)


@pytest.mark.process
async def test_arguments_that_an_independent_server_cuts_off_are_told_to_the_model(stage, independent, weather_tool):
    result = await stage.play(stage.agent(model=independent, tools=[weather_tool]), "half a call")
    assert "the arguments are not a JSON object" in result.entries[2].content
    assert result.reply == "I see."


async def test_text_usage_and_headers(stage, endpoint, model):
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    endpoint.stream(said("Hel"), said("lo", "stop"), json.dumps(usage), "[DONE]")
    result = await stage.play(stage.agent(model=model, instructions="You help."))
    assert (result.reply, result.usage) == ("Hello", Usage(7, 3, 1, model=model.name))
    head, body = endpoint.requests[0]
    assert head.startswith("POST /v1/chat/completions")
    assert "authorization: bearer key" in head.lower()
    assert body["messages"] == [{"role": "system", "content": "You help."}, {"role": "user", "content": "hi"}]


async def test_one_connection_serves_many_calls(stage, endpoint, model):
    for _ in range(3):
        endpoint.stream(said("ok", "stop"), "[DONE]")
        await stage.play(stage.agent(model=model))
    assert (len(endpoint.requests), endpoint.connections) == (3, 1)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"message": "Incorrect API key provided"}}, "auth"),
        (403, {"error": {"message": "no access"}}, "auth"),
        (402, {"error": {"message": "pay first"}}, "quota"),
        (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, "quota"),
        (429, {"error": {"message": "slow down"}}, "rate"),
        (404, {"error": {"message": "model not found"}}, "missing"),
        (400, {"error": {"message": "This model's maximum context length is 8192 tokens"}}, "context"),
        (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, "context"),
        (400, {"error": {"message": "x", "code": "content_filter"}}, "filter"),
        (400, {"error": {"message": "bad tool"}}, "request"),
        (500, {"error": {"message": "oops"}}, "overload"),
        (503, "<html>busy</html>", "overload"),
        (529, {}, "overload"),
    ],
)
async def test_every_refusal_has_its_kind(stage, endpoint, model, status, body, kind):
    endpoint.answer(status, (body if isinstance(body, str) else json.dumps(body)).encode())
    await stage.play(stage.agent(model=model))
    assert stage.fields("llm:after")["error"]["kind"] == kind


async def test_a_stream_that_is_cut_off_is_an_error_and_what_came_is_kept(stage, endpoint, model):
    endpoint.stream(said("half "), end=False)
    result = await stage.play(stage.agent(model=model))
    assert (result.status, stage.fields("llm:after")["error"]["kind"]) == ("failed", "network")
    assert stage.fields("llm:after")["content"] == "half "


async def test_a_stream_that_ends_too_early_without_a_fault_is_an_error_too(stage, endpoint, model):
    endpoint.stream(said("half "))
    result = await stage.play(stage.agent(model=model))
    assert "cut off before its end" in result.error


async def test_a_stream_without_its_last_word_is_whole_when_the_model_said_that_it_stopped(stage, endpoint, model):
    endpoint.stream(said("whole", "stop"))
    assert (await stage.play(stage.agent(model=model))).reply == "whole"


@pytest.mark.parametrize("piece", ["{broken", "<html>", '{"choices": "x"}'])
async def test_wrong_json_in_a_stream_is_an_error(stage, endpoint, model, piece):
    endpoint.stream(said("a "), piece)
    await stage.play(stage.agent(model=model))
    assert stage.fields("llm:after")["error"]["kind"] == "response"


async def test_an_error_inside_a_stream_is_an_error(stage, endpoint, model):
    endpoint.stream(said("a "), json.dumps({"error": {"message": "upstream overloaded", "type": "overloaded_error"}}))
    result = await stage.play(stage.agent(model=model))
    assert "upstream overloaded" in result.error


async def test_a_server_that_does_not_stream_is_understood(stage, endpoint, model):
    body = {"choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}]}
    endpoint.answer(200, json.dumps(body).encode())
    assert (await stage.play(stage.agent(model=model))).reply == "whole"


async def test_a_stall_is_given_up(stage, endpoint, model):
    model.stall = 0.1
    endpoint.answers.append(b"stall")
    await stage.play(stage.agent(model=model))
    assert stage.fields("llm:after")["error"]["kind"] == "timeout"


async def test_nobody_there_is_a_network_error(stage):
    model = OpenAIModel("gpt", base_url="http://127.0.0.1:1/v1")
    result = await stage.play(stage.agent(model=model))
    assert "could not be reached" in result.error
    await model.aclose()


def test_a_name_that_is_not_known_is_told_in_words():
    unknown = httpcore.ConnectError(socket.gaierror(-2, "Name or service not known"))
    with pytest.raises(ModelError, match=r"reached: no machine of that name was found$"), as_model_errors():
        raise unknown


async def test_a_passing_refusal_is_tried_again_once_in_one_layer(stage, endpoint, model):
    """The library itself does not retry, or the waits would multiply."""
    endpoint.answer(429, b"{}", retry_after_ms="20")
    endpoint.stream(said("ok", "stop"), "[DONE]")
    result = await stage.play(stage.agent(model=FallbackModel((model,), RetryPolicy(2, Backoff(0.001, 0.01)))))
    assert (result.reply, len(endpoint.requests)) == ("ok", 2)


async def test_another_name_for_the_model_is_sent(stage, endpoint, model):
    stage.on("llm:before")(lambda event: {"model": "larger"} if event["model"] == "gpt" else None)
    endpoint.stream(said("ok", "stop"), "[DONE]")
    await stage.play(stage.agent(model=model))
    assert endpoint.requests[0][1]["model"] == "larger"


@pytest.mark.parametrize("path", ["", "/", "/v1/chat/completions", "/v2"])
async def test_a_wrong_address_is_named_with_the_right_one(stage, endpoint, path):
    base = endpoint.url.removesuffix("/v1")
    body = b'{"object": "list", "data": [{"id": "gpt"}]}'
    endpoint.pages["/v1/models"] = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    endpoint.answer(404, b"<html>Not Found</html>", "text/html")
    model = OpenAIModel("gpt", base_url=f"{base}{path}")
    result = await stage.play(stage.agent(model=model))
    await model.aclose()
    assert f"{base}{path} is not where a model answers (HTTP 404" in result.error
    assert result.error.endswith(f"write base_url: {endpoint.url}")
    assert stage.fields("llm:after")["error"]["kind"] == "missing"
    assert "its name and its address" in result.reply


async def test_a_model_that_is_not_there_is_no_wrong_address(stage, endpoint, model):
    endpoint.answer(404, b'{"error": {"message": "The model `gpt` does not exist"}}')
    result = await stage.play(stage.agent(model=model))
    assert "does not exist" in result.error
    assert "base_url" not in result.error


@pytest.mark.parametrize("where", ["refused", "streamed"])
async def test_an_endpoint_that_says_the_key_back_tells_it_to_nobody(stage, endpoint, where):
    model = OpenAIModel("gpt", api_key="sk-of-mine-12345", base_url=endpoint.url, headers={"X-Other": "another-secret"})
    said_back = {"error": {"message": "no sk-of-mine-12345 and no another-secret here"}}
    if where == "refused":
        endpoint.answer(401, json.dumps(said_back).encode())
    else:
        endpoint.stream(said("a "), json.dumps(said_back))
    result = await stage.play(stage.agent(model=model))
    await model.aclose()
    assert "no [secret] and no [secret] here" in result.error
    assert "12345" not in str(stage.fired) + result.reply + result.error


@pytest.mark.parametrize("body", ["{}", '{"choices": []}', '{"object": "error"}'])
async def test_a_good_status_with_nothing_in_it_is_no_answer(stage, endpoint, model, body):
    endpoint.answer(200, body.encode())
    await stage.play(stage.agent(model=model))
    assert stage.fields("llm:after")["error"]["kind"] == "response"


async def test_half_an_answer_is_kept_and_marked(stage, endpoint, model):
    stage.on("llm:after")(lambda event: {"content": event["content"].replace("number 7", "number *")})
    endpoint.stream(said("the number 7"), end=False)
    result = await stage.play(stage.agent(model=model))
    assert result.reply.startswith("the number * [...]\n\nThe answer broke off here. I could not reach")
    assert result.entries[-1].content == result.reply


async def test_an_answer_that_reached_the_models_length_says_so(stage, endpoint, model):
    endpoint.stream(said("and then", "length"), "[DONE]")
    result = await stage.play(stage.agent(model=model))
    assert result.reply.startswith("and then\n\n[The answer was cut off here")
    assert (result.stop, stage.fields("agent:end")["stop"]) == ("length", "length")
    assert result.entries[-1].content == result.reply


async def test_an_empty_answer_is_asked_for_once_more(stage, endpoint, model):
    endpoint.stream(said("", "stop"), "[DONE]")
    endpoint.stream(said("here", "stop"), "[DONE]")
    assert (await stage.play(stage.agent(model=model))).reply == "here"
    for _ in range(2):
        endpoint.stream(said(" \n", "stop"), "[DONE]")
    result = await stage.play(stage.agent(model=model))
    assert "gave an empty answer, twice" in result.reply
    assert (result.stop, len(endpoint.requests)) == ("empty", 4)


async def test_what_a_hook_took_away_is_not_asked_for_again(stage, endpoint, model):
    stage.on("llm:after")(lambda event: {"content": ""})
    endpoint.stream(said("secret", "stop"), "[DONE]")
    result = await stage.play(stage.agent(model=model))
    assert (result.reply, len(endpoint.requests)) == ("", 1)


def test_a_key_is_never_in_a_repr():
    assert "hidden" not in repr(OpenAIModel("gpt", api_key="hidden", headers={"X-Key": "hidden"}))
