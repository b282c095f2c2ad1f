"""The variables that a hook may see, its requests to the gateway, and their limits."""

from typing import Literal

import anyio
import pytest

from gateway.config.settings import HooksSettings
from gateway.hooks import HookRegistry
from tests.hooks.folders.workshop import Home, Yard, hook_of
from tests.spine import until

pytestmark = pytest.mark.process


@pytest.mark.row("T26")
async def test_a_hook_sees_the_environment_that_it_declares(home: Home) -> None:
    source = "import os\ndef handle(e, c): return {'seen': dict(os.environ)}\n"
    home.plant("env", "intercepts: ['my:*']\nenv: [API_KEY]\n", source)
    registry = HookRegistry()
    async with home.serving(registry, API_KEY="k", BOT_TOKEN="secret", HTTPS_PROXY="p") as service:
        seen = (await registry.run("my:event", seen=None))["seen"]
        assert set(seen) == {"PATH", "HOME", "HERMES_HOME", "API_KEY", "HTTPS_PROXY"}
        assert (await service.info("env")).found == ()


@pytest.mark.row("T26")
async def test_a_hook_written_for_hermes_gets_what_stands_in_its_source(home: Home) -> None:
    source = """
        import os
        def handle(event_type, context):
            token = os.getenv("BOT_TOKEN")
            return {"decision": "handled", "message": token or "none"}
    """
    home.plant("old", "events: ['command:*']\n", source)
    modes: list[tuple[Literal["lenient", "strict"], str]] = [("lenient", "secret"), ("strict", "none")]
    for env, said in modes:
        registry = HookRegistry()
        async with home.serving(registry, settings=HooksSettings(env=env), BOT_TOKEN="secret") as service:
            event = await registry.run("command:new", command="new", args="", result=None)
            assert event["result"] == said
            assert (await service.info("old")).found == (("BOT_TOKEN",) if env == "lenient" else ())


async def test_a_hook_may_do_what_its_manifest_uses_and_nothing_else(yard: Yard) -> None:
    source = "def handle(e, c):\n    c.gateway.send('here', 'hi')\n    return {'seen': 'sent'}\n"
    yard.plant("may", "intercepts: ['may:*']\nuses: [send]\n", source)
    yard.plant("not", "intercepts: ['not:*']\n", source)
    for name in ("may", "not"):
        await yard.state(name, "loaded")
    event = await yard.registry.run("may:event", seen=None)
    assert event["seen"] == "sent"
    assert yard.granted == [("may", "send", {"to": "here", "text": "hi"}, event["id"])]
    assert (await yard.registry.run("not:event", seen=None))["seen"] is None
    error = (await yard.status("not")).last_error
    assert error
    assert "not may not send: add `uses: [send]` to its HOOK.yaml" in error.message


async def test_events_that_hooks_emit_know_their_cause_and_end_after_eight(yard: Yard) -> None:
    source = "async def handle(e, c):\n    await c.gateway.emit('my:echo', n=c['n'] + 1)\n"
    yard.plant("echo", "events: ['my:*']\nuses: [emit]\n", source)
    await yard.state("echo", "loaded")
    seen: list[tuple[int, str | None]] = []
    yard.registry.watch("my:*", lambda name, event: seen.append((event["n"], event["cause"])))
    yard.registry.emit("my:event", n=0)
    await until(lambda: len(seen) >= 9)
    yard.registry.emit("my:event", n=100)
    await until(lambda: sum(n >= 100 for n, _ in seen) >= 9)
    first = [n for n, _ in seen if n < 100]
    assert first == list(range(len(first)))
    assert 9 <= len(first) <= 10
    assert seen[0][1] is None
    assert all(cause for n, cause in seen[1:] if n != 100)


AFTERTHOUGHT = """#!/usr/bin/env python3
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if str(asked.get("method", "")).startswith("my:"):
        print(json.dumps({"id": asked["id"], "result": None}), flush=True)
        time.sleep(0.05)
        fields = {"name": "my:echo", "fields": {"n": asked["params"]["n"] + 1}}
        print(json.dumps({"id": f"own-{asked['id']}", "method": "gateway.emit", "params": fields}), flush=True)
"""


async def test_what_a_program_asks_for_after_its_answer_has_a_cause_too(yard: Yard) -> None:
    yard.plant("late", "events: ['my:*']\nuses: [emit]\ncommand: ['./late.py']\n", **{"late.py": AFTERTHOUGHT})
    await yard.state("late", "loaded")
    seen: list[int] = []
    yard.registry.watch("my:*", lambda name, event: seen.append(event["n"]))
    yard.registry.emit("my:event", n=0)
    await until(lambda: len(seen) >= 9)
    await anyio.sleep(0.3)
    assert 9 <= len(seen) <= 10


async def test_a_hook_that_only_the_gateway_may_tell_of_cannot_be_emitted(yard: Yard) -> None:
    source = "async def handle(e, c):\n    await c.gateway.emit('message:received', text='forged')\n"
    yard.plant("forger", "events: ['my:*']\nuses: [emit]\n", source)
    await yard.state("forger", "loaded")
    yard.registry.emit("my:event")
    await until(lambda: yard.hook("forger").calls.record.last_error)
    error = (await yard.status("forger")).last_error
    assert error
    assert "an event of the gateway alone" in error.message


@pytest.mark.row("T23")
async def test_where_trust_is_pinned_only_what_was_trusted_runs(home: Home) -> None:
    canary = home.root / "canary"
    home.plant("one", "events: ['my:*']\n", f"open({str(canary)!r}, 'w')\n" + home.noting("one", "1"))
    registry = HookRegistry()
    async with home.serving(registry, settings=HooksSettings(trust="pinned")) as service:
        status = await service.info("one")
        assert status.state == "pending"
        assert "hooks trust one" in status.reason
        assert not canary.exists()
        await service.trust("one")
        assert (await service.info("one")).state == "loaded"
        (home.hooks / "one" / "handler.py").write_text(home.noting("one", "2"))
        await until(lambda: "not trusted" in hook_of(service, "one").process.reason)
        registry.emit("my:event", n=1)
        await until(lambda: home.seen("one") == [["1", "my:event", 1]])
    async with home.serving(HookRegistry(), settings=HooksSettings(trust="pinned")) as service:
        assert (await service.info("one")).state == "pending"
