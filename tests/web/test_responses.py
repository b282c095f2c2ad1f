"""`/v1/responses` of a running gateway, asked by the library of OpenAI as it is."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from gateway.testing import GatewayProcess
from tests.web.test_chat_completions import (
    AGENT,
    SCRIPT,
    SEEING,
    SETTINGS,
    client_of,
    make_key,
    post,
    seen,
    state_of,
    told,
)

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("v1") / "home") as gateway:
        gateway.script(*SCRIPT, settings=SETTINGS)
        gateway.add_hook("sees", SEEING)
        gateway.start()
        gateway.until(lambda: state_of(gateway, "sees") == "loaded")
        yield gateway


@pytest.fixture(scope="module")
def key(gateway: GatewayProcess) -> str:
    return make_key(gateway, "app")


@pytest.fixture(scope="module")
def client(gateway: GatewayProcess, key: str) -> openai.OpenAI:
    return client_of(gateway, key)


def ask(client: openai.OpenAI, given: Any, **more: Any) -> Any:
    return client.responses.create(model=AGENT, input=given, **more)


def test_an_answer_has_what_clients_read(client: openai.OpenAI) -> None:
    answer = ask(client, "hello")
    assert (answer.output_text, answer.status, answer.model, answer.error) == ("Good day.", "completed", AGENT, None)
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (7, 3, 10)
    again = client.responses.retrieve(answer.id)
    assert again.to_dict() == answer.to_dict()
    client.responses.delete(answer.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(answer.id)


def test_a_stream_is_parsed_by_the_library(client: openai.OpenAI) -> None:
    with client.responses.stream(model=AGENT, input="slow") as stream:
        kinds = [event.type for event in stream]
        whole = stream.get_final_response()
    assert whole.output_text == "Slowly."
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds.count("response.output_text.delta") == 3
    assert kinds[-1] == "response.completed"
    numbers = [event.sequence_number for event in ask(client, "hello", stream=True)]
    assert numbers == list(range(len(numbers)))


def test_items_are_the_history(gateway: GatewayProcess, client: openai.OpenAI) -> None:
    items = [
        {"role": "user", "content": "my number is 4711"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]},
        {"type": "reasoning", "summary": []},
        {"role": "user", "content": [{"type": "input_text", "text": "hello, the number?"}]},
    ]
    assert ask(client, items, instructions="Be a pirate.").output_text == "Good day."
    told = seen(gateway, "llm:before", "the number?")["messages"]
    assert [one["role"] for one in told] == ["user", "user", "assistant", "user"]
    assert told[0]["content"].endswith("Be a pirate.")


def test_a_response_goes_on_with_another(gateway: GatewayProcess, client: openai.OpenAI) -> None:
    first = ask(client, "hello, first")
    second = ask(client, "hello, second", previous_response_id=first.id)
    ask(client, "hello, third", previous_response_id=second.id)
    told = seen(gateway, "llm:before", "third")["messages"]
    assert [one["content"] for one in told] == [
        *("hello, first", "Good day.", "hello, second", "Good day."),
        "hello, third",
    ]
    unkept = ask(client, "hello", store=False)
    other = client_of(gateway, make_key(gateway, "other"))
    for asking, previous in ((client, "resp_0"), (client, unkept.id), (other, first.id)):
        with pytest.raises(openai.NotFoundError) as missing:
            ask(asking, "hello", previous_response_id=previous)
        assert (missing.value.param, missing.value.code) == ("previous_response_id", "previous_response_not_found")
    with pytest.raises(openai.NotFoundError):
        other.responses.retrieve(first.id)


def test_a_response_that_is_deleted_before_it_is_there_costs_no_more(
    gateway: GatewayProcess, client: openai.OpenAI
) -> None:
    begun = next(iter(ask(client, "endless, deleted", stream=True)))
    gateway.until(lambda: gateway.call("status")["turns"]["running"] == 1)
    client.responses.delete(begun.response.id)
    gateway.until(lambda: not gateway.call("status")["turns"]["running"])
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(begun.response.id)


@pytest.mark.row("T9")
def test_a_key_that_is_made_anew_finds_no_answer_of_the_one_before(gateway: GatewayProcess) -> None:
    named: Any = {"extra_headers": {"Idempotency-Key": "report"}}
    first = client_of(gateway, make_key(gateway, "rotated"))
    before, of_user = ask(first, "hello", **named), ask(first, "hello", user="ann")
    assert ask(first, "hello", **named).id == before.id
    assert gateway.cli("keys", "new", "rotated", "--as", "user").returncode != 0
    assert first.responses.retrieve(before.id).output_text == "Good day.", "a key that is there keeps its answers"
    assert gateway.cli("keys", "revoke", "rotated").returncode == 0
    second = client_of(gateway, make_key(gateway, "rotated"))
    for answer in (before, of_user):
        with pytest.raises(openai.NotFoundError):
            second.responses.retrieve(answer.id)
        with pytest.raises(openai.NotFoundError):
            ask(second, "hello", previous_response_id=answer.id)
    again = ask(second, "hello", **named)
    assert second.responses.retrieve(again.id).output_text == "Good day."
    assert again.created_at >= before.created_at
    gateway.until(lambda: len(heard_of(gateway, "rotated")) == 2)


def heard_of(gateway: GatewayProcess, person: str) -> list[dict[str, Any]]:
    return [one for one in told(gateway, "message:received") if one["user_id"] == person]


def test_with_a_user_the_session_holds(gateway: GatewayProcess, client: openai.OpenAI) -> None:
    first = ask(client, "hello one", user="ann")
    ask(client, "hello two", user="ann", previous_response_id=first.id)
    assert len(seen(gateway, "llm:before", "hello two")["messages"]) == 3
    with pytest.raises(openai.NotFoundError):
        ask(client, "hello", user="bob", previous_response_id=first.id)
    assert seen(gateway, "message:received", "hello two")["session_key"] == "agent:main:api:dm:app:ann"


def test_what_fails_is_told(client: openai.OpenAI) -> None:
    with pytest.raises(openai.InternalServerError):
        ask(client, "break")
    last = list(ask(client, "break", stream=True))[-1]
    assert (last.type, last.response.error.code) == ("response.failed", "turn_failed")


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"input": 7}, "input"),
        ({"input": []}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"store": "yes"}, "store"),
    ],
)
def test_what_is_wrong_is_named(gateway: GatewayProcess, key: str, given: dict[str, Any], param: str) -> None:
    body = json.dumps({"model": AGENT, "input": "hello", **given}).encode()
    answer = post(gateway, body, "/v1/responses", Authorization=f"Bearer {key}")
    assert (answer.status, json.loads(answer.body)["error"]["param"]) == (400, param)
