"""A real sherma, both ways: its server is called by our client, and its client calls our server.

It lives in an environment of its own, made once and kept beside pytest's other caches.
"""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.events import Deny, Event
from gateway.events.catalogue import get_event_spec
from gateway.hooks import HookRegistry
from gateway.hooks.remote import Remote, RemoteSpec, interceptor
from gateway.hooks.server import HookServer
from gateway.hooks.wires.sherma import METHODS, ShermaMethod
from gateway.hooks.wires.wire import HookFailed
from gateway.worker.protocol import CallMeta
from tests.environments import fill
from tests.hooks.wires.site import page, serving, site
from tests.spine import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300), pytest.mark.thorough]

PACKAGES = ("sherma==1.5.0", "a2a-sdk[http-server]<1", "fastapi", "uvicorn")
DECIDES = CallMeta(decides=True)

SERVER = """
import socket
import uvicorn
from sherma.hooks.apps import {application}
from sherma.hooks.handler import HookHandler

class Hooks(HookHandler):
    async def before_llm_call(self, params):
        params["system_prompt"] = params.get("system_prompt", "") + " [srv]"
        params["messages"] = []
        return params
    async def before_graph_invoke(self, params):
        params["config"]["recursion_limit"] = 50
        params["input"]["message"] += "!"
        return params
    async def after_tool_call(self, params):
        raise RuntimeError("nope")
    async def on_node_error(self, params):
        params["error"] = None
        return params

sock = socket.create_server(("127.0.0.1", 0))
print(sock.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config({application}(handler=Hooks()).build(), log_level="warning")).run(sockets=[sock])
"""

CLIENT = """
import asyncio, dataclasses, json, sys
from sherma.hooks.remote import RemoteHookExecutor
from sherma.hooks.types import *
from sherma.hooks.types import BeforeLLMCallContext, GraphInvokeContext, NodeEnterContext, OnNodeErrorContext
from sherma.hooks.types import AfterToolCallContext, BeforeInterruptContext, BeforeSkillLoadContext

async def main():
    remote, told = RemoteHookExecutor(sys.argv[1], timeout=60), {}
    async def ask(name, ctx):
        answer = await getattr(remote, name)(ctx)
        told[name] = None if answer is None else {
            field.name: getattr(answer, field.name) for field in dataclasses.fields(answer)
            if field.name not in ("node_context", "agent", "error")
        }
    await ask("before_llm_call", BeforeLLMCallContext(None, "agent", ["hi"], "S", ["t"], {"a": 1}))
    await ask("before_graph_invoke", GraphInvokeContext("a", "t", {"recursion_limit": 25}, {"message": "hello"}))
    await ask("node_enter", NodeEnterContext(None, "n", "call_llm", {}))
    await ask("after_tool_call", AfterToolCallContext(None, "n", {"results": []}, {}))
    await ask("on_node_error", OnNodeErrorContext(None, "n", "custom", ValueError("bad"), {}))
    await ask("before_interrupt", BeforeInterruptContext(None, "n", "Sure?", {}))
    await ask("before_skill_load", BeforeSkillLoadContext(None, "weather", "1"))
    print(json.dumps(told))

asyncio.run(main())
"""


@pytest.fixture(scope="session")
def sherma(request: pytest.FixtureRequest) -> str:
    """The interpreter of an environment with sherma in it."""
    assert request.config.cache
    made = Path(request.config.cache.mkdir("sherma-1.5.0")) / f"python-{sys.version_info[0]}.{sys.version_info[1]}"
    if not made.exists():
        building = made.with_name(f"{made.name}-{uuid.uuid4().hex}")
        fill(building, PACKAGES)
        adapt(building)
        try:
            building.rename(made)
        except OSError:
            shutil.rmtree(building)  # another worker of this run was faster
    return str(made / "bin" / "python")


def adapt(environment: Path) -> None:
    """It says that it runs on 3.11, and has three lines of a later syntax."""
    (schema,) = environment.glob("lib/python*/site-packages/sherma/schema.py")
    text = re.sub(r"^def (\w+)\[T: BaseModel\]\(", r"def \1(", schema.read_text(), flags=re.MULTILINE)
    if "from __future__ import annotations" not in text:
        text = f"from __future__ import annotations\n{text}"
    schema.write_text(text)


@asynccontextmanager
async def their_server(python: str, application: str) -> AsyncIterator[str]:
    program = [python, "-c", SERVER.replace("{application}", application)]
    process = await anyio.open_process(program, start_new_session=True, cwd="/")
    try:
        assert process.stdout
        port = (await process.stdout.receive()).decode().strip()
        yield f"http://127.0.0.1:{port}/hooks"
    finally:
        process.kill()
        await process.aclose()


@asynccontextmanager
async def remote(url: str) -> AsyncIterator[Remote]:
    made = await Remote.open(RemoteSpec("theirs", url, "sherma", is_local=True), lambda: 0.0, lambda: "")

    async def does_answer() -> bool:  # it listens before it does
        with suppress(HookFailed):
            await made.call("node:before", {"node": "n", "node_type": "x", "state": {}}, DECIDES, 60)
            return True
        return False

    try:
        await until(does_answer)
        yield made
    finally:
        await made.stop(1)


@pytest.mark.row("SHE-43")
@pytest.mark.row("SHE-48")
@pytest.mark.row("SHE-49")
@pytest.mark.row("SHE-50")
@pytest.mark.row("SHE-54")
@pytest.mark.row("SHE-55")
@pytest.mark.parametrize("application", ["HookFastAPIApplication", "HookStarletteApplication"])
async def test_a_sherma_server_is_one_of_our_hooks(sherma: str, application: str) -> None:
    async with their_server(sherma, application) as url, remote(url) as wire:
        fields = {"system": "S", "messages": [{"role": "user", "content": "x"}], "tools": [], "node": "agent"}
        assert (await wire.call("llm:before", fields, DECIDES, 60)).changed == {"system": "S [srv]"}
        start = {"agent": "a", "session_id": "s", "config": {"recursion_limit": 25}, "message_full": "hello"}
        assert (await wire.call("agent:start", start, DECIDES, 60)).changed == {
            "config": {"recursion_limit": 50},
            "message_full": "hello!",
        }
        assert (await wire.call("llm:after", {"content": "x", "tool_calls": []}, DECIDES, 60)).changed == {}
        with pytest.raises(HookFailed, match="nope"):
            await wire.call("tools:after", {"results": []}, DECIDES, 60)
        failed = {"node": "n", "node_type": "custom", "state": {}, "error": {"type": "ValueError", "message": "bad"}}
        assert (await wire.call("node:after", failed, DECIDES, 60)).changed == {}


@pytest.mark.row("SHE-43")
@pytest.mark.row("SHE-46")
@pytest.mark.row("SHE-51")
@pytest.mark.row("SHE-57")
async def test_it_is_registered_in_code_and_its_failures_stop_nobody(sherma: str) -> None:
    registry = HookRegistry()
    async with registry, their_server(sherma, "HookFastAPIApplication") as url, remote(url) as wire:
        registry.on("llm:before", lambda event: {"system": event["system"] + " [mine]"})
        registry.on(["llm:before", "tools:after"], interceptor(wire))
        event = await registry.run("llm:before", system="S", messages=[], tools=[], state={"x": {1, 2}, "y": object()})
        assert event["system"] == "S [mine] [srv]"
        event = await registry.run("tools:after", results=[1])
        assert (event["results"], event.outcome) == ([1], None)


async def their_client(python: str, url: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        python, "-c", CLIENT, url, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/"
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    told: dict[str, Any] = json.loads(out)
    return told


@pytest.mark.row("SHE-59")
@pytest.mark.row("SHE-60")
@pytest.mark.row("SHE-61")
@pytest.mark.row("SHE-62")
@pytest.mark.row("SHE-63")
@pytest.mark.row("SHE-65")
async def test_a_sherma_client_is_answered_by_handlers_of_our_events(sherma: str) -> None:
    def prompt(event: Event) -> Any:
        return {"system": event["system"] + " [ours]", "messages": []}

    def start(event: Event) -> Any:
        event["config"] = {"recursion_limit": 50}
        event["message_full"] += "!"

    server = HookServer(
        {
            "llm:before": prompt,
            "agent:start": start,
            "tools:after": lambda event: Deny("no"),
            "node:after": lambda event: {"error": None},
            "skill:before": lambda event: {"skill": event["skill"] + "-2"},
        }
    )
    async with site(serving(server)) as served:
        told = await their_client(sherma, served.url)
    assert [request["id"] for _, request in served.requests] == list(range(1, 8))
    assert told["before_llm_call"] == {
        "node_name": "agent",
        "messages": ["hi"],
        "system_prompt": "S [ours]",
        "tools": ["t"],
        "state": {"a": 1},
    }
    assert told["before_graph_invoke"] == {
        "agent_id": "a",
        "thread_id": "t",
        "config": {"recursion_limit": 50},
        "input": {"message": "hello!"},
    }
    assert told["before_skill_load"] == {"skill_id": "weather-2", "version": "1"}
    assert told["node_enter"] is None
    assert told["before_interrupt"] is None
    assert told["after_tool_call"] is None


@pytest.mark.row("SHE-59")
async def test_a_sherma_client_is_answered_by_handlers_of_its_own_names(sherma: str) -> None:
    async def before_llm_call(params: Event) -> Any:
        params["system_prompt"] += " [own]"
        return params

    async with site(serving(HookServer({"before_llm_call": before_llm_call}))) as served:
        told = await their_client(sherma, served.url)
    assert told["before_llm_call"]["system_prompt"] == "S [own]"
    assert {name for name, answer in told.items() if answer} == {"before_llm_call"}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
async def test_a_handler_of_ours_finds_in_their_call_what_their_name_says(method: ShermaMethod) -> None:
    """A handler that serves several of their methods tells them apart as it does with our own events."""
    seen: list[dict[str, Any]] = []
    server = HookServer({method.point: lambda event: seen.append(dict(event))})
    said = {"error": {"type": "E", "message": "x"}} if "error" in method.name else {"version": "2"}
    request = {"jsonrpc": "2.0", "id": 1, "method": method.name, "params": said}
    answer = await server.answer(json.dumps(request).encode())
    assert json.loads(answer or b"")["result"] is None
    spec = get_event_spec(method.point)
    assert spec
    telling = {"action", "kind", "error", "version"} & {field.name for field in spec.fields}
    assert telling <= seen[0].keys()
    assert seen[0].get("action", "").endswith("load") or "skill" not in method.name
    assert seen[0].get("version", "2") == "2"
    assert (seen[0].get("error") is None) == ("error" not in method.name)


@pytest.mark.parametrize("name", ["llm:before", "before_llm_call"])
async def test_a_decision_is_an_error_where_sherma_has_none_on_both_sides(name: str) -> None:
    server = HookServer({name: lambda event: Deny("no")})
    request = {"jsonrpc": "2.0", "id": 1, "method": "before_llm_call", "params": {"system_prompt": "S"}}
    answer = json.loads(await server.answer(json.dumps(request).encode()) or b"")
    assert answer["error"]["message"] == "deny cannot be said to sherma: no"

    async def reply(headers: dict[str, str], body: bytes) -> bytes:
        number = json.loads(body)["id"]
        return page(json.dumps({"jsonrpc": "2.0", "id": number, "result": {"decision": "deny"}}).encode())

    async with site(reply) as served:
        wire = await Remote.open(RemoteSpec("theirs", served.url, "sherma", is_local=True), lambda: 0.0, lambda: "")
        with pytest.raises(HookFailed, match=r"the answer decides .'deny'., and sherma's methods take changed fields"):
            await wire.call("llm:before", {"system": "S"}, DECIDES, 60)
        await wire.stop(1)
