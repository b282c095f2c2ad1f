"""A remote hook is called by JSON-RPC over HTTP; whatever its server does, the answer is an answer or a HookFailed."""

import asyncio
import base64
import itertools
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.errors import HookError
from gateway.events import Deny, Event
from gateway.hooks.http_transport import PublicResolver
from gateway.hooks.remote import Remote, RemoteSpec
from gateway.hooks.server import HookServer
from gateway.hooks.wires.wire import HookAnswer, HookFailed
from gateway.worker.protocol import CallMeta
from tests.hooks.wires.site import Reply, page, serving, site

DECIDES = CallMeta(decides=True)


def result(value: Any, **more: Any) -> Reply:
    async def reply(headers: dict[str, str], body: bytes) -> bytes:
        answer = {"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": value, **more}
        return page(json.dumps(answer).encode())

    return reply


def says(raw: bytes) -> Reply:
    async def reply(headers: dict[str, str], body: bytes) -> bytes:
        return raw

    return reply


@asynccontextmanager
async def opened(url: str, **more: Any) -> AsyncIterator[Remote]:
    ids = itertools.count(1)
    spec = RemoteSpec("far", url, **{"is_local": True, **more})
    remote = await Remote.open(spec, lambda: 1_700_000_000.0, lambda: f"msg_{next(ids)}")
    try:
        yield remote
    finally:
        await remote.stop(1)


async def ask(reply: Reply, fields: Any, name: str = "my:event", meta: CallMeta = DECIDES, **more: Any) -> HookAnswer:
    async with site(reply) as served, opened(served.url, **more) as remote:
        return await remote.call(name, fields, meta, 60)


@pytest.mark.row("SHE-48")
async def test_a_call_is_one_post_with_method_params_and_an_id_that_counts_up() -> None:
    async with site(result(None)) as served, opened(served.url) as remote:
        await remote.call("tool:before", {"tool": "shell", "args": {}}, DECIDES, 60)
        await remote.call("agent:end", b'{"response":"x"}', CallMeta(), 60)
        first, second = (request for _, request in served.requests)
    assert first == {
        "jsonrpc": "2.0",
        "method": "tool:before",
        "params": {"tool": "shell", "args": {}},
        "meta": {"decides": True},
        "id": 1,
    }
    assert second == {"jsonrpc": "2.0", "method": "agent:end", "params": {"response": "x"}, "id": 2}
    assert served.connections == 1


@pytest.mark.row("SHE-49")
@pytest.mark.row("SHE-54")
async def test_only_what_was_sent_and_may_be_written_is_taken_back() -> None:
    reply = result({"args": {"a": 2}, "tool": "shell", "hop": 9, "invented": 1, "result": None})
    meta = CallMeta(decides=True, writable=("args", "tool", "result"))
    answer = await ask(reply, {"tool": "shell", "args": {"a": 1}, "hop": 0}, "tool:before", meta)
    assert answer.changed == {"args": {"a": 2}}
    assert answer.refused == ("hop",)
    assert answer.result is None


@pytest.mark.row("SHE-50")
async def test_null_an_absent_result_and_an_observer_change_nothing() -> None:
    assert await ask(result(None), {"a": 1}) == HookAnswer()
    assert await ask(says(page(b'{"id": 1}')), {"a": 1}) == HookAnswer()
    assert await ask(result({"a": 2}), {"a": 1}, meta=CallMeta()) == HookAnswer()


async def test_decisions_arrive_as_they_are() -> None:
    assert (await ask(result({"decision": "deny", "message": "no"}), {})).result == {
        "decision": "deny",
        "message": "no",
    }
    asked = (await ask(result({"decision": "ask", "name": "may", "prompt": "May I?"}), {})).ask
    assert asked
    assert (asked.name, asked.prompt) == ("may", "May I?")


ODD = [
    (b"", "not JSON", "garbled"),
    (b"<html>", "not JSON; it begins with '<html>'", "garbled"),
    (b"[]", "is a list", "garbled"),
    (b'{"id":1,"result":[1]}', "result is a list", "garbled"),
    (b'{"id":1,"result":"x"}', "result is a str", "garbled"),
    (b'{"id":2,"result":{}}', "to request '2'", "garbled"),
    (b'{"id":1,"error":{"code":-32000,"message":"nope"}}', "says: nope", "raised"),
    (b'{"id":1,"error":"nope"}', "says: nope", "raised"),
    (b'{"id":1,"result":{"decision":"perhaps"}}', "unknown decision", "garbled"),
    (b"[" * 10_000, "not JSON", "garbled"),
    (b'{"id":1,"result":{"a":[' + b"1," * 200_000 + b"1]}}", "values", "garbled"),
]


@pytest.mark.row("SHE-51")
@pytest.mark.row("SHE-57")
@pytest.mark.parametrize(("body", "what", "kind"), ODD, ids=[what for _, what, _ in ODD])
async def test_an_odd_reply_is_a_failure_that_says_what_is_odd(body: bytes, what: str, kind: str) -> None:
    with pytest.raises(HookFailed) as caught:
        await ask(says(page(body)), {"a": 1})
    assert caught.value.kind == kind
    assert all(word in str(caught.value) for word in what.split("; "))
    assert "far at http://127.0.0.1" in str(caught.value)


@pytest.mark.row("SHE-51")
@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (page(b"{}", "500 Internal Server Error"), "HTTP 500 Internal Server Error"),
        (page(b"{}", "404 Not Found"), "HTTP 404"),
        (
            page(b"{}", "302 Found", "location: http://127.0.0.1:1/"),
            "it sends us on to http://127.0.0.1:1/; write that",
        ),
        (page(b"{}", "200 OK", "content-encoding: gzip"), "compressed"),
        (page(b" " * (5 << 20)), "more than 4 MB"),
        (b"nonsense\r\n\r\n", "far at"),
        (b"", "far at"),
    ],
)
async def test_what_http_says_wrong_is_a_failure(raw: bytes, what: str) -> None:
    async def once(headers: dict[str, str], body: bytes) -> bytes:
        if not raw:
            raise ConnectionError
        return raw

    with pytest.raises(HookFailed, match=what):
        await ask(once, {})


@pytest.mark.row("SHE-51")
@pytest.mark.row("SHE-52")
async def test_silence_and_refusal_are_failures() -> None:
    async def silent(headers: dict[str, str], body: bytes) -> bytes:
        await asyncio.sleep(5)
        return b""

    async with site(silent) as served, opened(served.url) as remote:
        with pytest.raises(HookFailed, match=r"no answer within 0.05 s") as late:
            await remote.call("my:event", {}, DECIDES, 0.05)
    assert late.value.kind == "timeout"
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with opened(f"http://127.0.0.1:{port}/hooks") as remote:
        with pytest.raises(HookFailed) as refused:
            await remote.call("my:event", {}, DECIDES, 60)
    assert refused.value.kind == "died"


@pytest.mark.row("SHE-58")
async def test_small_offences_are_forgiven() -> None:
    assert (await ask(says(page(b'{"id":1,"error":null,"result":{"a":2}}')), {"a": 1})).changed == {"a": 2}


@pytest.mark.row("SHE-53")
@pytest.mark.row("SHE-57")
async def test_what_is_no_plain_data_is_sent_to_be_read_and_not_taken_back() -> None:
    class Live:
        def __str__(self) -> str:
            raise RuntimeError("not even that")

    round_and_round: dict[str, Any] = {}
    round_and_round["self"] = round_and_round
    fields = {"state": {"x": {1, 2}, "y": Live()}, "loop": round_and_round, "obj": object(), "n": 1, "odd": "\ud800"}
    async with site(result({"state": {}, "obj": "mine", "n": 2})) as served, opened(served.url) as remote:
        answer = await remote.call("my:event", fields, DECIDES, 60)
        (_, sent), *_ = served.requests
    assert set(sent["params"]) == set(fields)
    assert sent["params"]["loop"] == "<dict>"
    assert sent["params"]["state"]["y"] == "<Live>"
    assert answer.changed == {"n": 2}


@pytest.mark.row("SHE-56")
async def test_the_making_of_a_model_is_never_sent() -> None:
    for dialect in ("gateway", "sherma"):
        async with site(result({"model": "other"})) as served, opened(served.url, dialect=dialect) as remote:
            assert (
                await remote.call("model:create", {"model": "m", "kwargs": {"api_key": "k"}}, DECIDES, 60)
                == HookAnswer()
            )
            assert served.requests == []


async def test_a_signed_request_is_believed_by_our_own_server() -> None:
    secret = "whsec_" + base64.b64encode(b"k" * 32).decode()

    def guard(event: Event) -> Any:
        return Deny("no")

    server = HookServer({"tool:before": guard}, secret=secret, clock=lambda: 1_700_000_000.0)

    reply = serving(server)
    answer = await ask(reply, {"tool": "shell"}, "tool:before", key=b"k" * 32)
    assert answer.result == {"decision": "deny", "message": "no", "soft": False}
    with pytest.raises(HookFailed, match="HTTP 401"):
        await ask(reply, {"tool": "shell"}, "tool:before", key=b"x" * 32)
    with pytest.raises(HookFailed, match="HTTP 401"):
        await ask(reply, {"tool": "shell"}, "tool:before")


@pytest.mark.row("SHE-53")
@pytest.mark.row("SHE-54")
@pytest.mark.row("SHE-55")
async def test_sherma_is_spoken_to_in_its_own_words() -> None:
    taken = {"node_name": None, "messages": None, "system_prompt": "S [srv]", "tools": ["t"], "state": None}
    async with site(result(taken)) as served, opened(served.url, dialect="sherma") as remote:
        fields = {"system": "S", "messages": [{"role": "user"}], "tools": [], "hop": 0, "session_id": "s"}
        answer = await remote.call("llm:before", fields, DECIDES, 60)
        assert served.requests[0][1] == {
            "jsonrpc": "2.0",
            "method": "before_llm_call",
            "params": {
                "node_name": "agent",
                "messages": [{"role": "user"}],
                "system_prompt": "S",
                "tools": [],
                "state": {},
            },
            "id": 1,
        }
        assert answer.changed == {"system": "S [srv]"}
        assert await remote.call("gateway:startup", {"platforms": []}, CallMeta(), 60) == HookAnswer()
        assert len(served.requests) == 1
    cleared = result({"node_name": "n", "node_type": "custom", "error": None, "state": {}})
    async with site(cleared) as served, opened(served.url, dialect="sherma") as remote:
        failed = {"node": "n", "node_type": "custom", "state": {}, "error": {"type": "ValueError", "message": "bad"}}
        assert (await remote.call("node:after", failed, DECIDES, 60)).changed == {}
        assert served.requests[0][1]["method"] == "on_node_error"
        assert served.requests[0][1]["params"]["error"] == {"type": "ValueError", "message": "bad"}


@pytest.mark.row("T31")
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "10.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "0.0.0.0", "100.64.0.1", "2130706433"],
)
async def test_a_strangers_url_to_a_closed_address_is_refused_before_any_call(host: str) -> None:
    with pytest.raises(HookError, match="not on the public internet"):
        await Remote.open(RemoteSpec("far", f"http://{host}:8000/hooks"), lambda: 0, lambda: "")


@pytest.mark.row("T31")
async def test_a_strangers_name_that_resolves_to_a_closed_address_is_refused() -> None:
    async with opened("http://localhost:1/hooks", is_local=False) as remote:
        with pytest.raises(HookFailed, match="not on the public internet"):
            await remote.call("my:event", {}, DECIDES, 60)


@pytest.mark.row("T31")
async def test_of_the_addresses_of_a_name_only_public_ones_are_used_and_they_are_the_ones_connected_to() -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("10.0.0.1", "93.184.216.34", "127.0.0.1")
        ]

    found = await PublicResolver(resolve).resolve("example.org", 443)
    assert [(one["host"], one["port"], one["hostname"]) for one in found] == [("93.184.216.34", 443, "example.org")]
    assert asked == ["example.org"]


async def test_stopping_waits_for_what_was_begun_and_then_refuses() -> None:
    begun = asyncio.Event()

    async def slow(headers: dict[str, str], body: bytes) -> bytes:
        begun.set()
        await asyncio.sleep(0.02)
        return page(b'{"id":1}')

    async with site(slow) as served, opened(served.url) as remote:
        call = asyncio.create_task(remote.call("my:event", {}, DECIDES, 60))
        await begun.wait()
        await remote.stop(60)
        assert await call == HookAnswer()
        with pytest.raises(HookFailed) as refused:
            await remote.call("my:event", {}, DECIDES, 60)
    assert refused.value.kind == "refused"
