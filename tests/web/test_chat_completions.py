"""`/v1/chat/completions` of a running gateway, asked by the library of OpenAI as it is."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

from gateway.testing import GatewayProcess
from gateway.web.openai.server import MOST_AT_ONCE
from tests.web.visits import Visit, connect, read_answer, say

pytestmark = pytest.mark.process

AGENT = "helper"
TOOL = {"tool_calls": [{"name": "shell", "args": {"command": "touch mark"}}]}
SCRIPT = (
    {"user": "hello", "chunks": ["Good ", "day", "."], "usage": {"input_tokens": 7, "output_tokens": 3}},
    {"user": "use a tool", "answers": [{"text": "Let me see.", **TOOL}, {"text": "I may not."}]},
    {"user": "break", "answers": [{"error": {"message": "sesame"}}]},
    {"user": "slow", "chunks": ["Sl", "ow", "ly."], "delay": 1.5},
    {"user": "endless", "chunks": ["on "] * 100, "delay": 30},
    {"user": "sweet", "text": "sugar"},
    {"user": "salt", "text": "salt"},
)
SETTINGS = f"""
agents: {{{AGENT}: {{}}, other: {{}}}}
access: {{rate: 1000, tools: {{user: [all]}}}}
sessions: {{turns_per_person: 100}}
tools: {{shell: ask, roots: [.]}}
"""
SEES = """
import json, os, pathlib
def handle(name, context):
    names = ("platform", "user_id", "role", "text", "session_key", "messages", "agent", "interrupted", "message_full")
    kept = {key: context.get(key) for key in names}
    with open(pathlib.Path(os.environ["HERMES_HOME"]) / "seen.jsonl", "a") as file:
        file.write(json.dumps([name, kept], default=str) + "\\n")
"""
CHANGES = """
from gateway.hooks import Deny
def handle(name, context):
    if context["text"] == "sugar":
        context["text"] = "honey"
    if context["text"] == "salt":
        raise Deny("no salt")
"""
SEEING = {"HOOK.yaml": "events: [message:received, llm:before, agent:end]\n", "handler.py": SEES}
CHANGING = {"HOOK.yaml": "intercepts: [message:sending]\n", "handler.py": CHANGES}


def make_key(gateway: GatewayProcess, name: str, *args: str) -> str:
    made = gateway.cli("keys", "new", name, *(args or ("--as", "user", "--agent", AGENT)), "--json")
    assert not made.returncode, made.stderr
    return str(json.loads(made.stdout)["key"])


def url_of(gateway: GatewayProcess) -> str:
    return str(gateway.call("status")["web"]["url"])


def client_of(gateway: GatewayProcess, key: str) -> openai.OpenAI:
    return openai.OpenAI(api_key=key, base_url=f"{url_of(gateway)}/v1", max_retries=0, timeout=600)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("v1") / "home") as gateway:
        gateway.script(*SCRIPT, settings=SETTINGS)
        gateway.add_hook("sees", SEEING)
        gateway.start()
        gateway.until(lambda: state_of(gateway, "sees") == "loaded")
        yield gateway


def state_of(gateway: GatewayProcess, hook: str) -> str:
    return str(gateway.call("hooks.info", {"name": hook})["state"])


@pytest.fixture(scope="module")
def key(gateway: GatewayProcess) -> str:
    return make_key(gateway, "app")


@pytest.fixture(scope="module")
def client(gateway: GatewayProcess, key: str) -> openai.OpenAI:
    return client_of(gateway, key)


def said(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def ask(client: openai.OpenAI, text: str, **more: Any) -> Any:
    return client.chat.completions.create(model=AGENT, messages=said(text), **more)


def text_of(answer: Any) -> str:
    return str(answer.choices[0].message.content)


def text_of_stream(chunks: Any) -> str:
    return "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)


def seen(gateway: GatewayProcess, event: str, text: str) -> dict[str, Any]:
    """What the hook was told, the last time, of a message with these words."""
    found: list[dict[str, Any]] = []

    def find() -> bool:
        found[:] = [fields for fields in told(gateway, event) if text in json.dumps(fields)]
        return bool(found)

    gateway.until(find)
    return found[-1]


def told(gateway: GatewayProcess, event: str) -> list[dict[str, Any]]:
    """All that the hook was told of these events."""
    path = gateway.home.root / "seen.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [
        fields for name, fields in map(json.loads, filter(lambda line: line.endswith("\n"), lines)) if name == event
    ]


def post(gateway: GatewayProcess, body: bytes, path: str = "/v1/chat/completions", **headers: str) -> Visit:
    named = {"Host": "127.0.0.1", "Content_Type": "application/json", "Content_Length": str(len(body)), **headers}
    lines = [f"POST {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in named.items())]
    return read_answer(say_all(gateway, "\r\n".join(lines).encode() + b"\r\n\r\n" + body))


def say_all(gateway: GatewayProcess, data: bytes) -> bytes:
    return say(url_of(gateway), data)


def test_an_answer_has_what_clients_read(client: openai.OpenAI) -> None:
    before = int(time.time())
    answer = ask(client, "hello")
    assert (text_of(answer), answer.model, answer.object) == ("Good day.", AGENT, "chat.completion")
    assert (answer.choices[0].finish_reason, answer.choices[0].message.role) == ("stop", "assistant")
    assert answer.usage.to_dict() == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert answer.id.startswith("chatcmpl-")
    assert before - 1 <= answer.created <= time.time() + 1
    assert answer.system_fingerprint is None


def test_a_stream_has_the_same_words_and_its_usage_at_the_end(client: openai.OpenAI) -> None:
    chunks = list(ask(client, "slow", stream=True, stream_options={"include_usage": True}))
    pieces = [one.choices[0].delta.content for one in chunks if one.choices]
    assert [one for one in pieces if one] == ["Sl", "ow", "ly."]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [one.choices[0].finish_reason for one in chunks if one.choices][-1] == "stop"
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens >= 0) == ([], True)
    assert len({one.id for one in chunks}) == 1


def test_without_a_user_the_messages_are_the_whole_history(gateway: GatewayProcess, client: openai.OpenAI) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "You are a pirate."},
        {"role": "user", "content": [{"type": "text", "text": "my number is 4711"}]},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "hello, what was it?"},
    ]
    assert client.chat.completions.create(model=AGENT, messages=messages).choices[0].message.content == "Good day."
    told = seen(gateway, "llm:before", "what was it")["messages"]
    assert [one["role"] for one in told] == ["user", "user", "assistant", "user"]
    assert told[0]["content"].endswith("You are a pirate.")
    assert told[0]["content"] != "You are a pirate.", "it is quoted, and is not an instruction of ours"
    assert [one["content"] for one in told[1:]] == ["my number is 4711", "Noted.", "hello, what was it?"]
    ask(client, "hello, once more")
    assert len(seen(gateway, "llm:before", "once more")["messages"]) == 1


def test_with_a_user_the_session_holds(gateway: GatewayProcess, client: openai.OpenAI) -> None:
    for text in ("hello one", "hello two"):
        ask(client, text, user="ann")
    ask(client, "hello three", user="bob")
    told = seen(gateway, "llm:before", "hello two")["messages"]
    assert [one["content"] for one in told] == ["hello one", "Good day.", "hello two"]
    assert len(seen(gateway, "llm:before", "hello three")["messages"]) == 1
    told = seen(gateway, "message:received", "hello three")
    assert (told["platform"], told["user_id"], told["role"]) == ("api", "app:bob", "user")
    assert (told["session_key"], told["agent"]) == ("agent:main:api:dm:app:bob", AGENT)


def test_hooks_change_the_answer_and_withhold_it(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*SCRIPT, settings=SETTINGS)
        gateway.add_hook("changes", CHANGING)
        gateway.start()
        gateway.until(lambda: state_of(gateway, "changes") == "loaded")
        client = client_of(gateway, make_key(gateway, "app"))
        assert text_of(ask(client, "sweet")) == "honey"
        assert text_of_stream(ask(client, "sweet", stream=True)) == "honey"
        withheld = ask(client, "salt")
        assert (text_of(withheld), withheld.choices[0].finish_reason) == ("", "content_filter")


def test_nobody_is_asked_and_the_answer_is_no_at_once(gateway: GatewayProcess, client: openai.OpenAI) -> None:
    for user in ("carl", None):
        assert text_of(ask(client, "use a tool", **({"user": user} if user else {}))) == "I may not."
    assert not list(gateway.home.root.rglob("mark"))
    assert gateway.call("approvals.list")["approvals"] == []


def test_what_was_said_before_a_tool_stays_in_the_stream(client: openai.OpenAI) -> None:
    chunks = list(ask(client, "use a tool", stream=True))
    assert text_of_stream(chunks) == "Let me see.\n\nI may not."


def test_a_turn_that_fails_is_an_error_and_tells_no_secret(client: openai.OpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as failed:
        ask(client, "break")
    assert failed.value.code == "turn_failed"
    assert "sesame" not in str(failed.value)
    with pytest.raises(openai.APIError):
        list(ask(client, "break", stream=True))


def test_who_is_over_a_budget_is_refused_as_clients_know_it(tmp_path: Path) -> None:
    """The unmodified library raises its own error, of a stream before anything of it is told."""
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*SCRIPT, settings=f"{SETTINGS}budgets: {{each_person: {{day: {{tokens: 5}}}}}}\n")
        gateway.start()
        client = client_of(gateway, make_key(gateway, "app"))
        assert text_of(ask(client, "hello")) == "Good day."
        assert text_of(ask(client, "hello", user="ann")) == "Good day."  # a person of their own
        ways: list[Callable[[], object]] = [
            lambda: ask(client, "hello"),
            lambda: ask(client, "hello", stream=True),
            lambda: ask(client, "hello", user="ann", stream=True),
            lambda: client.responses.create(model=AGENT, input="hello"),
            lambda: client.responses.create(model=AGENT, input="hello", stream=True),
        ]
        for begin in ways:
            with pytest.raises(openai.RateLimitError) as refused:
                begin()
            assert (refused.value.code, refused.value.type) == ("insufficient_quota", "insufficient_quota")
            assert "10 tokens of 5 tokens that may be used today" in str(refused.value)
            assert refused.value.response.headers["x-should-retry"] == "false"


def test_models(gateway: GatewayProcess, client: openai.OpenAI) -> None:
    (model,) = client.models.list()
    assert (model.id, model.object, client.models.retrieve(AGENT).id) == (AGENT, "model", AGENT)
    for name in ("other", "gpt-5"):
        with pytest.raises(openai.NotFoundError) as missing:
            client.chat.completions.create(model=name, messages=said("hello"))
        assert (missing.value.code, missing.value.param) == ("model_not_found", "model")


@pytest.mark.row("T10")
def test_who_may_speak(gateway: GatewayProcess) -> None:
    with pytest.raises(openai.AuthenticationError) as wrong:
        client_of(gateway, "hgw_wrong").models.list()
    assert wrong.value.code == "invalid_api_key"
    for role in ("user", "operator"):
        with pytest.raises(openai.PermissionDeniedError):
            ask(client_of(gateway, make_key(gateway, f"mute-{role}", "--as", role)), "hello")
    assert text_of(ask(client_of(gateway, make_key(gateway, "op", "--as", "operator", "--agent", AGENT)), "hello"))
    refused = gateway.cli("keys", "new", "x", "--as", "user", "--agent", "nobody")
    assert (refused.returncode, "agent 'nobody' not found" in refused.stderr) == (1, True)


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"messages": "hello"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [{"content": "hello"}]}, "messages[0].role"),
        ({"messages": [{"role": "king", "content": "hello"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages"),
        ({"messages": [{"role": "assistant", "content": "hello"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
        ({"stream": "yes"}, "stream"),
        ({"user": 7}, "user"),
        ({"user": ""}, "user"),
        ({"user": "a\nb"}, "user"),
        ({"user": "x" * 300}, "user"),
        ({"model": None}, "model"),
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"stop": ["."]}, "stop"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"modalities": ["text", "audio"]}, "modalities"),
    ],
)
def test_what_is_wrong_is_named(gateway: GatewayProcess, key: str, given: dict[str, Any], param: str) -> None:
    body = json.dumps({"model": AGENT, "messages": said("hello"), **given}).encode()
    answer = post(gateway, body, Authorization=f"Bearer {key}")
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["param"], error["type"]) == (400, param, "invalid_request_error"), error


def test_what_does_no_harm_is_passed_over(client: openai.OpenAI) -> None:
    tool: Any = {"type": "function", "function": {"name": "f", "parameters": {}}}
    harmless: dict[str, Any] = {"temperature": 0.1, "max_tokens": 5, "top_p": 1, "seed": 3, "n": 1, "stop": []}
    assert text_of(ask(client, "hello", tools=[tool], tool_choice="auto", metadata={"a": "b"}, **harmless))


def test_refusals_have_one_shape(gateway: GatewayProcess, key: str) -> None:
    bearer = {"Authorization": f"Bearer {key}"}
    form = {**bearer, "Content_Type": "text/plain"}
    for answer, status in (
        (post(gateway, b"{}"), 401),
        (post(gateway, b"{}", "/v1/nothing"), 401),
        (post(gateway, b"{}", "/v1/nothing", **bearer), 404),
        (post(gateway, b"{}", "/v1/models", **bearer), 405),
        (post(gateway, b"{", **bearer), 400),
        (post(gateway, b"[]", **bearer), 400),
        (post(gateway, b"{}", **form), 415),
        (post(gateway, b" " * (5 << 20), **bearer), 413),
    ):
        error = json.loads(answer.body)["error"]
        assert (answer.status, set(error)) == (status, {"message", "type", "param", "code"})


def test_the_same_call_is_one_turn(gateway: GatewayProcess, client: openai.OpenAI) -> None:
    named = {"extra_headers": {"Idempotency-Key": "once"}}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: ask(client, "slow, once", **named), range(4)))
    answers.append(ask(client, "slow, once", **named))
    assert [one.to_dict() for one in answers] == [answers[0].to_dict()] * 5
    streamed = list(ask(client, "slow, again", stream=True, extra_headers={"Idempotency-Key": "stream"}))
    again = list(ask(client, "slow, again", stream=True, extra_headers={"Idempotency-Key": "stream"}))
    assert streamed[0].id == again[0].id
    assert text_of_stream(again) == text_of_stream(streamed) == "Slowly."
    turns = [one for one in told(gateway, "message:received") if one["text"] == "slow, once"]
    assert len(turns) == 1
    with pytest.raises(openai.UnprocessableEntityError) as reused:
        ask(client, "hello", **named)
    assert reused.value.code == "idempotency_key_reused"


@pytest.mark.row("T9")
def test_a_key_that_is_revoked_ends_what_runs_by_it(gateway: GatewayProcess) -> None:
    client = client_of(gateway, make_key(gateway, "gone"))
    chunks = ask(client, "endless, gone", stream=True, user="dora")
    assert next(chunks).choices
    assert gateway.call("status")["calls"] == {"gone": 1}
    assert "calls of programs: gone 1" in gateway.cli("status").stdout
    assert gateway.cli("keys", "revoke", "gone").returncode == 0
    with pytest.raises(openai.APIError, match="revoked"):
        list(chunks)
    with pytest.raises(openai.AuthenticationError):
        client.models.list()
    gateway.until(lambda: not gateway.call("status")["turns"]["running"])
    assert gateway.call("status")["calls"] == {}


def request_of(key: str, body: dict[str, Any]) -> bytes:
    """The bytes of a call."""
    data = json.dumps({"model": AGENT, **body}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


@pytest.mark.parametrize(("user", "is_stopped"), [("", True), ("emma", False)])
def test_who_leaves_stops_what_nobody_else_can_have(
    gateway: GatewayProcess, key: str, user: str, is_stopped: bool
) -> None:
    text = f"slow, {user or 'nobody'} leaves"
    with connect(url_of(gateway)) as leaving:
        leaving.sendall(request_of(key, {"messages": said(text), **({"user": user} if user else {})}))
        session = str(seen(gateway, "llm:before", text)["session_key"])
    assert seen(gateway, "agent:end", text)["interrupted"] is is_stopped
    shown = gateway.call("sessions.list", {})["sessions"]
    assert is_stopped or session in [one["session_key"] for one in shown]


def test_many_who_leave_at_any_moment_leave_nothing_behind(gateway: GatewayProcess) -> None:
    key, url = make_key(gateway, "hasty"), url_of(gateway)

    def leave(number: int) -> None:
        with connect(url) as leaving:
            leaving.sendall(request_of(key, {"messages": said("endless, hasty"), "stream": number % 2 == 0}))
            time.sleep(number % 8 * 0.02)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(leave, range(80)))
    gateway.until(lambda: gateway.call("status")["calls"] == {})
    gateway.until(lambda: gateway.call("status")["turns"] == {"running": 0, "waiting": 0})


def test_so_many_at_once(gateway: GatewayProcess) -> None:
    key = make_key(gateway, "many")

    def call(number: int) -> Visit:
        body = json.dumps({"model": AGENT, "messages": said("slow"), "user": f"u{number}"}).encode()
        return post(gateway, body, Authorization=f"Bearer {key}")

    with ThreadPoolExecutor(MOST_AT_ONCE + 4) as pool:
        answers = list(pool.map(call, range(MOST_AT_ONCE + 4)))
    assert Counter(one.status for one in answers) == {200: MOST_AT_ONCE, 429: 4}
    assert all(int(one.headers["retry-after"]) > 0 for one in answers if one.status == 429)
