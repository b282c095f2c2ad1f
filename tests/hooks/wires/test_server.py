"""A hook server answers what the gateway and sherma's client send, byte for byte, and survives everything else."""

import base64
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.events import Deny, End, Event, Retry, on
from gateway.hooks import HookRegistry
from gateway.hooks.server import HookServer
from gateway.hooks.wires.signing import key_of, sign

SAMPLE = Path(__file__).parents[3] / "sample_hooks" / "remote-server"
JSON = {"content-type": "application/json"}


async def http(
    server: HookServer, body: bytes, headers: Mapping[str, str] = JSON, method: str = "POST", parts: int = 1
) -> tuple[int, dict[str, str], bytes]:
    """One exchange by the ASGI specification."""
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": "/hooks", "headers": raw}
    size = -(-len(body) // parts) or 1
    pieces = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages[-1]["more_body"] = False
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await server(scope, receive, send)
    start, end = sent
    return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, end["body"]


async def call(server: HookServer, method: str, params: Any = None, **more: Any) -> dict[str, Any]:
    request = {"jsonrpc": "2.0", "method": method, "params": params or {}, "id": 1, **more}
    answer = await server.answer(json.dumps(request).encode())
    assert answer is not None
    said: dict[str, Any] = json.loads(answer)
    return said


def louder(event: Event) -> None:
    event["system"] = event["system"] + " [srv]"


@pytest.mark.row("SHE-59")
async def test_a_handler_takes_an_event_and_changes_it() -> None:
    server = HookServer({"llm:before": louder})
    assert (await call(server, "llm:before", {"system": "S", "hop": 0}))["result"] == {"system": "S [srv]"}


@pytest.mark.row("SHE-59")
@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (None, None),
        ({"args": {"a": 2}}, {"args": {"a": 2}}),
        (Deny("no"), {"decision": "deny", "message": "no", "soft": False}),
        (End("bye", "why"), {"decision": "end", "reply": "bye", "reason": "why"}),
        (Retry("again", 1), {"decision": "retry", "message": "again", "delay": 1}),
        ({"decision": "deny", "message": "plain"}, {"decision": "deny", "message": "plain", "soft": False}),
        ({"decision": "ask", "prompt": "May I?"}, {"decision": "ask", "prompt": "May I?", "name": "May I?"}),
    ],
)
async def test_every_answer_of_a_handler_has_its_form_on_the_wire(answer: Any, result: Any) -> None:
    async def handler(event: Event) -> Any:
        return answer

    def raising(event: Event) -> Any:
        raise answer

    assert (await call(HookServer({"tool:before": handler}), "tool:before", {"args": {"a": 1}}))["result"] == result
    if isinstance(answer, Exception):
        assert (await call(HookServer({"tool:*": raising}), "tool:before"))["result"] == result


async def test_a_question_is_asked_and_answered_when_it_is_called_again() -> None:
    def handler(event: Event) -> Any:
        return None if event.ask("May I?", name="may") == "yes" else Deny("no")

    server = HookServer({"tool:before": handler})
    asked = (await call(server, "tool:before"))["result"]
    assert asked == {"decision": "ask", "name": "may", "prompt": "May I?"}
    assert (await call(server, "tool:before", meta={"answers": {"may": "yes"}}))["result"] is None
    assert (await call(server, "tool:before", meta={"answers": {"may": "no"}}))["result"]["decision"] == "deny"


async def test_a_question_asked_as_plain_data_lets_only_a_yes_through() -> None:
    server = HookServer({"tool:before": lambda event: {"decision": "ask", "name": "may", "prompt": "May I?"}})
    assert (await call(server, "tool:before", meta={"answers": {"may": "yes"}}))["result"] is None
    assert (await call(server, "tool:before", meta={"answers": {"may": "no"}}))["result"]["decision"] == "deny"


async def test_exact_names_come_before_globs_and_each_sees_what_the_one_before_left() -> None:
    server = HookServer(
        {
            "*": lambda event: {"text": event["text"] + "3"},
            "my:*": lambda event: {"text": event["text"] + "2"},
            "my:event": lambda event: {"text": event["text"] + "1"},
        }
    )
    assert (await call(server, "my:event", {"text": ""}))["result"] == {"text": "132"}
    assert (await call(server, "my:event:deep", {"text": ""}))["result"] == {"text": "32"}


async def test_a_field_named_decision_may_be_changed_to_any_word_that_is_none_of_ours() -> None:
    server = HookServer({"my:event": lambda event: {"decision": event["decision"].upper()}})
    assert (await call(server, "my:event", {"decision": "buy"}))["result"] == {"decision": "BUY"}
    assert (await call(server, "my:event", {"decision": "deny"}))["result"]["decision"] == "deny"
    hooks = HookRegistry()
    hooks.on("my:event", lambda event: {"decision": "sell"}, on_error="raise")
    assert (await hooks.run("my:event", decision="buy"))["decision"] == "sell"
    with pytest.raises(ValueError, match="unknown decision 'sell'"):
        await hooks.run("my:event", price=1)


async def test_an_object_may_bring_its_methods() -> None:
    class Hooks:
        @on("tool:before")
        def first(self, event: Event) -> Deny:
            return Deny("marked")

        async def before_llm_call(self, event: Event) -> dict[str, Any]:
            return {"system_prompt": "by name"}

    server = HookServer(Hooks())
    assert (await call(server, "tool:before"))["result"]["message"] == "marked"
    assert (await call(server, "before_llm_call", {"system_prompt": "S"}))["result"] == {"system_prompt": "by name"}
    with pytest.raises(ValueError, match="needs a handler"):
        HookServer(object())
    with pytest.raises(TypeError, match="cannot be called"):
        HookServer({"tool:before": 5})


async def test_writing_a_field_that_may_not_be_written_is_told() -> None:
    server = HookServer({"tool:after": lambda event: {"args": {}}})
    assert "cannot change 'args'" in (await call(server, "tool:after", {"args": {"a": 1}}))["error"]["message"]


@pytest.mark.row("SHE-63")
@pytest.mark.row("SHE-60")
async def test_a_handler_that_raises_is_an_error_with_status_200() -> None:
    def handler(event: Event) -> None:
        raise RuntimeError("nope")

    body = b'{"jsonrpc":"2.0","method":"tools:after","params":{},"id":4}'
    status, headers, answer = await http(HookServer({"tools:after": handler}), body)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert answer == b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"nope"},"id":4}'
    assert headers["content-length"] == str(len(answer))


@pytest.mark.row("SHE-61")
@pytest.mark.row("SHE-62")
async def test_what_has_no_handler_is_null_for_known_names_and_an_error_for_others() -> None:
    server = HookServer({"tool:before": louder})
    for known in ("agent:start", "before_llm_call", "on_chat_model_create", "node_enter", ""):
        assert (await call(server, known))["result"] is None
    assert (await call(server, "no:such"))["error"]["code"] == -32601


@pytest.mark.row("SHE-64")
@pytest.mark.parametrize("number", [1, "abc", None, 1.5, [1], {"a": 1}])
async def test_ids_of_any_type_come_back_and_missing_params_are_empty(number: Any) -> None:
    body = json.dumps({"method": "tool:before", "id": number}).encode()
    answer = json.loads(await HookServer({"tool:before": lambda event: {"n": len(event)}}).answer(body) or b"")
    assert answer["id"] == number
    assert "error" in answer
    body = json.dumps({"method": "my:event", "id": number}).encode()
    answer = json.loads(await HookServer({"my:event": lambda event: {"n": len(event)}}).answer(body) or b"")
    assert (answer["id"], answer["result"]) == (number, {"n": 0})


@pytest.mark.row("SHE-65")
async def test_fields_that_were_not_sent_are_not_made_up() -> None:
    server = HookServer({"llm:before": louder})
    reply = await call(server, "before_llm_call", {"system_prompt": "S"})
    assert reply["result"] == {"system_prompt": "S [srv]"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b'{"id":1}', -32600),
        (b'{"id":1,"method":5}', -32600),
        (b'{"id":1,"method":"tool:before","params":[1]}', -32602),
        (json.dumps([1] * 101).encode(), -32600),
    ],
)
async def test_what_is_no_request_is_a_json_rpc_error(body: bytes, code: int) -> None:
    status, _, answer = await http(HookServer({"tool:before": louder}), body)
    assert (status, json.loads(answer)["error"]["code"]) == (200, code)


async def test_batches_are_answered_together_and_notifications_not_at_all() -> None:
    seen: list[str] = []
    server = HookServer({"my:*": lambda event: seen.append(event.name)})
    batch = [{"method": "my:one", "id": 1}, {"method": "my:two"}, {"method": "no:such", "id": 3}, 7]
    answers = json.loads(await server.answer(json.dumps(batch).encode()) or b"")
    assert [answer["id"] for answer in answers] == [1, 3, None]
    assert seen == ["my:one", "my:two"]
    assert await http(server, b'{"method":"my:three"}') == (204, {}, b"")
    assert await http(server, b'[{"method":"my:four"},{"method":"no:such"}]') == (204, {}, b"")


@pytest.mark.row("SHE-60")
async def test_http_has_its_own_answers() -> None:
    server = HookServer({"my:event": lambda event: None})
    status, headers, _ = await http(server, b"", method="GET")
    assert (status, headers["allow"]) == (405, "POST")
    assert (await http(server, b"{}", {"content-type": "text/plain"}))[0] == 415
    assert (await http(server, b"{}", {}))[0] == 415
    assert (await http(server, b" " * (9 << 20), parts=9))[0] == 413
    body = '{"method":"my:event","id":"äöü"}'.encode()
    assert (await http(server, body, {"content-type": "application/json; charset=utf-8"}, parts=5))[2] == (
        '{"jsonrpc":"2.0","result":null,"id":"äöü"}'.encode()
    )


async def test_an_answer_that_is_no_json_is_an_error() -> None:
    server = HookServer({"my:event": lambda event: {"x": object()}})
    assert "not JSON" in (await call(server, "my:event"))["error"]["message"]


async def test_the_application_lives_and_dies_as_asgi_wants() -> None:
    asked = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return asked.pop(0)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    server = HookServer({"my:event": lambda event: None})
    await server({"type": "lifespan"}, receive, send)
    await server({"type": "websocket"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]


@pytest.mark.process
def test_the_sample_runs_under_uvicorn_as_its_page_says() -> None:
    words = (sys.executable, "-m", "uvicorn", "server:app", "--port", "0")
    with subprocess.Popen(words, cwd=SAMPLE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            line = next(line for line in process.stderr if "running on" in line)
            address = line.split("running on ")[1].split()[0]
            body = {"jsonrpc": "2.0", "id": 1, "method": "tool:before", "params": {"tool": "shell", "args": "sudo ls"}}
            request = Request(address, json.dumps(body).encode(), {"content-type": "application/json"})
            with urlopen(request, timeout=60) as answer:
                assert json.load(answer)["result"]["decision"] == "deny"
        finally:
            process.terminate()


SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()


async def test_with_a_secret_only_signed_requests_are_believed_each_of_them_once() -> None:
    now = [1_700_000_000.0]
    server = HookServer({"my:event": lambda event: None}, secret=SECRET, clock=lambda: now[0])
    body = b'{"method":"my:event","id":1}'
    signed = {**JSON, **sign(key_of(SECRET), "msg_1", now[0], body)}
    assert (await http(server, body))[0] == 401
    assert (await http(server, body + b" ", signed))[0] == 401
    assert (await http(server, body, {**signed, "webhook-id": "msg_2"}))[0] == 401
    assert (await http(server, body, {**JSON, **sign(key_of("x" * 24), "msg_1", now[0], body)}))[0] == 401
    assert (await http(server, body, {**JSON, **sign(key_of(SECRET), "msg_1", now[0] - 400, body)}))[0] == 401
    assert (await http(server, body, {**signed, "webhook-timestamp": "²"}))[0] == 401
    assert (await http(server, body, signed))[0] == 200
    assert (await http(server, body, signed))[0] == 401
    now[0] += 1
    both = sign(key_of(SECRET), "msg_3", now[0], body)
    both["webhook-signature"] = "v1,nonsense " + both["webhook-signature"]
    assert (await http(server, body, {**JSON, **both}))[0] == 200


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The example of their specification."""
    key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_weak_secret_is_refused() -> None:
    for weak in ("short", "whsec_", "whsec_?"):
        with pytest.raises(ValueError, match=r"secret|base64"):
            HookServer({"my:event": print}, secret=weak)


MEMBERS = st.sampled_from(["jsonrpc", "method", "params", "id", "meta", "answers", "x"])
METHODS = st.sampled_from(["my:event", "before_llm_call", "after_graph_invoke"])
REQUESTS = st.recursive(
    st.none() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner) | st.dictionaries(MEMBERS, inner | METHODS),
    max_leaves=9,
)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | REQUESTS.map(lambda request: json.dumps(request).encode()))
async def test_whatever_comes_the_answer_is_json_rpc(body: bytes) -> None:
    answer = await HookServer({"my:event": lambda event: None}).answer(body)
    for one in [] if answer is None else [x] if isinstance(x := json.loads(answer), dict) else x:
        assert ("result" in one) is not ("error" in one)
        assert "id" in one
