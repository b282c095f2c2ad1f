"""A hook that is a client of NATS: it is called and answers as over HTTP, and its user may do no more.

The server runs on the very configuration that docs/hooks-on-nats.md shows.
"""

import json
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from nats.aio.client import Client
from nats.aio.msg import Msg

from gateway.cluster.nats.engine import NatsEngine, open_nats
from gateway.engine.interface import ConsumerSpec, NewRecord
from gateway.errors import HookError
from gateway.events import Deny
from gateway.hooks import HookRegistry
from gateway.hooks.remote import Remote, RemoteSpec, interceptor
from gateway.hooks.wires.wire import HookAnswer, HookFailed
from gateway.testing import GatewayProcess
from gateway.worker.protocol import CallMeta
from tests.engine.nats_servers import NatsServer, wait_until_ready
from tests.http_server import find_free_ports
from tests.spine import until

PAGE = Path(__file__).parents[3] / "docs" / "hooks-on-nats.md"
WORDS = {"NATS_PASSWORD": "one-word", "GUARD_PASSWORD": "another-word", "TALLY_PASSWORD": "a-third-word"}
DECIDES = CallMeta(decides=True)

Handler = Callable[[dict[str, Any]], Any]


def serve_page(folder: Path) -> NatsServer:
    """The server of the page, but for its port and where it keeps its files, and with a monitor."""
    server = NatsServer(folder, "page", find_free_ports(3))
    shown = re.search(r"<<'END'\n(listen:.*?)\nEND\n", PAGE.read_text(), re.DOTALL)
    assert shown
    text = shown[1].replace("127.0.0.1:4222", f"127.0.0.1:{server.port}").replace("./nats", str(folder / "store"))
    (server.folder / "nats.conf").write_text(f"{text}\nhttp: 127.0.0.1:{server.monitor}\n")
    server.environ = WORDS
    server.start()
    wait_until_ready([server])
    return server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    one = serve_page(tmp_path_factory.mktemp("nats"))
    yield one
    one.kill()


class HookClient(Client):
    """`refused`: what the server did not let it do."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    async def note(self, error: Exception) -> None:
        self.refused.append(str(error))

    async def is_refused(self, act: Awaitable[Any]) -> bool:
        """Return True if the server refuses it, which it reports separately."""
        before = len(self.refused)
        await act
        await until(lambda: len(self.refused) > before)
        return "permissions violation" in self.refused[-1].lower()


@asynccontextmanager
async def client(server: NatsServer, user: str) -> AsyncIterator[HookClient]:
    one = HookClient()
    await one.connect(server.url, user=user, password=WORDS[f"{user.upper()}_PASSWORD"], error_cb=one.note)
    try:
        yield one
    finally:
        await one.close()


@asynccontextmanager
async def hook(server: NatsServer, handle: Handler, name: str = "guard", **more: Any) -> AsyncIterator[HookClient]:
    """A client that answers, with what the handler makes of a request, be it no answer at all (None)."""
    async with client(server, name) as one:

        async def answer(message: Msg) -> None:
            if (said := handle(json.loads(message.data))) is not None:
                await message.respond(said if isinstance(said, bytes) else json.dumps(said).encode())

        await one.subscribe(f"hooks.{name}", cb=answer, **more)
        await one.flush()
        yield one


@asynccontextmanager
async def opened(server: NatsServer, name: str = "guard", **more: Any) -> AsyncIterator[Remote]:
    url = f"nats://gateway@127.0.0.1:{server.port}/hooks.{name}"
    spec = RemoteSpec(name, **{"url": url, "is_local": True, "password": WORDS["NATS_PASSWORD"], **more})
    remote = await Remote.open(spec, lambda: 0.0, lambda: "id")
    try:
        yield remote
    finally:
        await remote.stop(1)


def result(value: Any) -> Handler:
    return lambda request: {"jsonrpc": "2.0", "id": request["id"], "result": value}


async def test_a_call_is_one_request_and_its_answer_is_taken_as_over_http(server: NatsServer) -> None:
    asked: list[Any] = []

    def handle(request: dict[str, Any]) -> Any:
        asked.append(request)
        return result({"args": {"a": 2}, "tool": "other", "invented": 1})(request)

    meta = CallMeta(decides=True, writable=("args",))
    async with hook(server, handle), opened(server) as remote:
        answer = await remote.call("tool:before", {"tool": "shell", "args": {"a": 1}}, meta, 60)
        assert await remote.call("agent:end", b'{"response":"x"}', CallMeta(), 60) == HookAnswer()
    assert (answer.changed, answer.refused) == ({"args": {"a": 2}}, ("tool",))
    assert asked[0] == {
        "jsonrpc": "2.0",
        "method": "tool:before",
        "params": {"tool": "shell", "args": {"a": 1}},
        "meta": {"decides": True, "writable": ["args"]},
        "id": 1,
    }


@pytest.mark.parametrize(
    ("handle", "what", "kind"),
    [
        (lambda _: b"", "not JSON", "garbled"),
        (lambda _: {"id": 9, "result": {}}, "to request '9'", "garbled"),
        (lambda one: {"id": one["id"], "result": {"decision": "perhaps"}}, "unknown decision", "garbled"),
        (lambda one: {"id": one["id"], "error": {"message": "nope"}}, "says: nope", "raised"),
        (lambda _: None, "no answer within 0.3 s", "timeout"),
    ],
)
async def test_whatever_it_answers_is_an_answer_or_a_failure(
    server: NatsServer, handle: Handler, what: str, kind: str
) -> None:
    async with hook(server, handle), opened(server) as remote:
        with pytest.raises(HookFailed, match=what) as caught:
            await remote.call("my:event", {"a": 1}, DECIDES, 0.3 if kind == "timeout" else 60)
    assert caught.value.kind == kind


async def test_what_is_not_there_says_so_and_why(server: NatsServer) -> None:
    port = find_free_ports(1)[0]
    for more, what in (
        ({}, "no hook listens there"),
        ({"password": "wrong"}, "no server takes us: .*(Authorization|does it know this user and password)"),
        ({"url": f"nats://gateway@127.0.0.1:{port}/hooks.guard"}, "no server takes us: .*Connect call failed"),
        (
            {"url": f"nats://guard@127.0.0.1:{server.port}/hooks.tally", "password": WORDS["GUARD_PASSWORD"]},
            "[Pp]ermissions [Vv]iolation",
        ),
    ):
        async with opened(server, **more) as remote:
            with pytest.raises(HookFailed, match=what) as caught:
                await remote.call("my:event", {"a": 1}, DECIDES, 30)
        assert caught.value.kind == "died"
        assert "one-word" not in str(caught.value)
    async with hook(server, result(None)), opened(server) as remote:
        with pytest.raises(HookFailed, match="the server takes 1048576") as caught:
            await remote.call("my:event", {"a": "x" * 1_100_000}, DECIDES, 30)
        assert caught.value.kind == "refused"
        assert await remote.call("my:event", {"a": 1}, DECIDES, 30) == HookAnswer()


async def test_only_a_manifest_of_this_machine_may_name_servers(server: NatsServer) -> None:
    with pytest.raises(HookError, match="only a manifest of this machine"):
        await Remote.open(RemoteSpec("x", f"{server.url}/hooks.x"), lambda: 0.0, lambda: "id")


async def test_of_several_servers_the_next_one_takes_it(server: NatsServer) -> None:
    away = find_free_ports(1)[0]
    url = f"nats://gateway@127.0.0.1:{away},127.0.0.1:{server.port}/hooks.guard"
    async with hook(server, result(None)), opened(server, url=url) as remote:
        assert await remote.call("my:event", {}, DECIDES, 30) == HookAnswer()


@pytest.mark.process
async def test_a_lost_server_is_a_failure_at_once_and_is_found_again(tmp_path: Path) -> None:
    own = serve_page(tmp_path)
    try:
        async with opened(own) as remote:
            async with hook(own, lambda _: None) as silent:
                async with anyio.create_task_group() as tasks:
                    failed: list[HookFailed] = []

                    async def ask() -> None:
                        with pytest.raises(HookFailed) as caught:
                            await remote.call("my:event", {}, DECIDES, 3600)
                        failed.append(caught.value)

                    tasks.start_soon(ask)
                    await until(lambda: silent.stats["in_msgs"] == 1)
                    own.kill()
                assert [one.kind for one in failed] == ["died"]
            with pytest.raises(HookFailed, match="no server takes us"):
                await remote.call("my:event", {}, DECIDES, 30)
            own.start()
            await anyio.to_thread.run_sync(wait_until_ready, [own])
            async with hook(own, result(None)):
                assert await remote.call("my:event", {}, DECIDES, 30) == HookAnswer()
    finally:
        own.kill()


async def test_of_several_copies_one_gets_each_event_however_many_ask(server: NatsServer) -> None:
    heard: list[Any] = []

    def handle(request: dict[str, Any]) -> Any:
        heard.append(request["params"]["n"])
        return result(None)(request)

    async with (
        hook(server, handle, queue="guard"),
        hook(server, handle, queue="guard"),
        opened(server) as one,
        opened(server) as other,
        anyio.create_task_group() as tasks,
    ):
        for n in range(20):
            tasks.start_soon((one, other)[n % 2].call, "my:event", {"n": n}, DECIDES, 60)
    assert sorted(heard) == list(range(20))


async def test_it_guards_and_what_it_guards_is_denied_while_it_is_away(server: NatsServer) -> None:
    registry = HookRegistry()
    async with registry, opened(server) as remote:
        registry.on("tool:before", interceptor(remote), on_error="deny")
        away = (await registry.run("tool:before", tool="shell", args={})).outcome
        async with hook(server, result({"decision": "deny", "message": "not here"})):
            denied = (await registry.run("tool:before", tool="shell", args={})).outcome
    assert isinstance(away, Deny)
    assert "guard" in away.text
    assert isinstance(denied, Deny)
    assert denied.text == "not here"


@asynccontextmanager
async def journal(server: NatsServer, name: str) -> AsyncIterator[NatsEngine]:
    async with await open_nats(f"{server.url}/{name}", "gateway", WORDS["NATS_PASSWORD"]) as engine:
        yield engine


async def test_its_user_may_neither_read_the_journal_nor_write_nor_ask_as_the_gateway(server: NatsServer) -> None:
    name = f"j{uuid.uuid4().hex[:8]}"  # of its stream, too
    async with (
        journal(server, name) as engine,
        hook(server, result(None)) as guard,
        hook(server, result(None), "tally"),
        opened(server, "tally") as remote,
    ):
        await engine.append(NewRecord("gw.in.a", b"secret"))
        await engine.consumer(ConsumerSpec("turns", ("gw.in.*",)))
        assert await engine.lease("bot.x", "one")
        heard: list[bytes] = []

        async def hear(message: Msg) -> None:
            heard.append(message.data)

        for subject in (">", f"{name}.j.>", f"{name}.r.>", f"{name}.l.>", "hooks.*", "hooks.tally", "_INBOX.>"):
            assert await guard.is_refused(guard.subscribe(subject, cb=hear)), subject
        for subject in (
            f"$JS.API.STREAM.MSG.GET.{name}",
            f"$JS.API.DIRECT.GET.{name}",
            f"$JS.API.CONSUMER.MSG.NEXT.{name}.turns",
            f"$JS.API.STREAM.PURGE.{name}",
            f"$JS.ACK.{name}.turns.1.1.1.1.0",
            f"{name}.j.gw.in.a.-",
            f"{name}.l.rt.ctl.x",
            f"{name}.k.x",
            "hooks.tally",
            "hooks.guard",
            "_INBOX.anybody.1",
        ):
            assert await guard.is_refused(guard.publish(subject, b"{}")), subject
        assert [one.data for one in await engine.read(">")] == [b"secret"]
        assert await engine.holder("bot.x") == "one"
        assert await engine.depth("turns") == 1
        assert await remote.call("agent:end", {"response": "x"}, DECIDES, 60) == HookAnswer()
        assert heard == []


async def test_it_answers_once_and_one_that_floods_or_hangs_disturbs_nobody(server: NatsServer) -> None:
    async with client(server, "guard") as guard, hook(server, result(None), "tally"), journal(server, "j") as engine:

        async def flood(message: Msg) -> None:
            request = json.loads(message.data)
            for decision in ("deny", *["end"] * 2000):
                said = {"id": request["id"], "result": {"decision": decision, "message": "m", "reply": "r"}}
                await message.respond(json.dumps(said).encode())

        await guard.subscribe("hooks.guard", cb=flood)
        await guard.flush()
        async with opened(server) as one, opened(server, "tally") as other:
            assert (await one.call("tool:before", {}, DECIDES, 60)).result["decision"] == "deny"
            await until(lambda: len(guard.refused) >= 2000)
            assert (await one.call("tool:before", {}, DECIDES, 60)).result["decision"] == "deny"
            async with anyio.create_task_group() as tasks:
                for n in range(50):
                    tasks.start_soon(other.call, "my:event", {"n": n}, DECIDES, 60)
            await engine.append(NewRecord("a.1", b"x"))


@pytest.mark.process
def test_a_gateway_asks_it_and_says_why_it_does_not_run(server: NatsServer, tmp_path: Path) -> None:
    """A guard and a durable one, in a gateway whose journal is a file; nobody listens at first."""
    url, heard = f"url: nats://gateway@127.0.0.1:{server.port}/hooks", []
    with GatewayProcess(tmp_path / "home") as gateway, start_blocking_portal() as portal:
        gateway.script({"user": "hello", "answers": [{"text": "let through"}]})
        more = "secret_env: NATS_PASSWORD\ntimeout: 20s\n"
        gateway.add_hook("guard", {"HOOK.yaml": f"intercepts: [message:received]\non_error: deny\n{url}.guard\n{more}"})
        gateway.add_hook("tally", {"HOOK.yaml": f"events: [agent:end]\ndelivery: durable\n{url}.tally\n{more}"})
        gateway.start()
        for name in ("guard", "tally"):
            assert "NATS_PASSWORD is not set" in gateway.call("hooks.info", {"name": name})["reason"]
        gateway.stop()
        gateway.start(environ={"NATS_PASSWORD": WORDS["NATS_PASSWORD"]})
        assert "let through" not in gateway.say("hello")["reply"]
        assert "no hook listens there" in gateway.call("hooks.info", {"name": "guard"})["last_error"]["message"]

        def tell(request: dict[str, Any]) -> Any:
            heard.append(request["method"])
            return result(None)(request)

        with portal.wrap_async_context_manager(hook(server, result(None))):
            assert gateway.say("hello")["reply"] == "let through"
            gateway.until(lambda: gateway.call("hooks.info", {"name": "tally"})["failures"] > 0)
            with portal.wrap_async_context_manager(hook(server, tell, "tally")):
                gateway.until(lambda: heard == ["agent:end"])
