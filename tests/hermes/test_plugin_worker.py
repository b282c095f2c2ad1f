"""A plugin in its process: what holds it up is ended with the process, and what it says of itself."""

import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.events import Deny, Event, outcome_from
from gateway.hermes.config import HermesConfig
from gateway.hermes.plugin_manifest import apply_registrations
from gateway.hermes.sources import make_plugin_source
from gateway.hooks.folders.handlers import HandlerTargets, ask_handlers
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.wires.event_calls import CallTerms
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.wire import HookFailed
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.worker.protocol import CallMeta
from tests.hooks.wires.workshop import SETTINGS, worker_spec

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
async def fork_server() -> AsyncIterator[ForkServerClient]:
    async with ForkServerClient(SETTINGS) as fork_server:
        yield fork_server


def plant(root: Path, source: str, manifest: str = "name: one\n") -> Path:
    folder = root / "one"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(manifest)
    (folder / "__init__.py").write_text(textwrap.dedent(source))
    return folder


def inspect(folder: Path) -> HookVersion:
    source = make_plugin_source(folder.parent, "plugins", HermesConfig(folder.parent / "config.yaml"))
    found = source.find(f"plugin:{folder.name}")
    assert found
    return source.inspect(found)


async def started(fork_server: ForkServerClient, folder: Path) -> WorkerHandle:
    async def serve(verb: str, params: dict[str, Any], during: str) -> Any:
        return params.get("default")

    facts = {"name": "one", "key": "one", "guards": ("tool:before",)}
    spec = worker_spec(folder / "__init__.py", name="one", shapes="gateway.hermes.plugin.plugin", facts=facts)
    return await fork_server.start(spec, serve, folder.parent / "log", 10.0)


async def test_a_callback_that_hangs_is_ended_with_its_process_within_a_second_or_two(
    fork_server: ForkServerClient, tmp_path: Path
) -> None:
    source = """
        import time

        def register(ctx):
            ctx.register_hook("pre_tool_call", lambda **_: time.sleep(60))
    """
    worker = await started(fork_server, plant(tmp_path, source))
    with pytest.raises(HookFailed, match=r"0\.2 s"):
        await worker.call("tool:before", {"tool": "x", "args": {}}, CallMeta(target="pre_tool_call"), 0.2)
    await worker.gone.wait()


async def test_a_guard_of_a_plugin_that_is_asked_in_vain_fails_the_call(
    fork_server: ForkServerClient, tmp_path: Path
) -> None:
    source = """
        async def ill(**_):
            raise ValueError("ill")

        def register(ctx):
            ctx.register_hook("pre_tool_call", lambda **_: {"action": "approve"})
            ctx.register_hook("pre_tool_call", ill)
    """
    worker = await started(fork_server, plant(tmp_path, source))
    event = Event("tool:before", {"tool": "x", "args": {}})
    with pytest.raises(HookFailed, match="ValueError: ill"):
        await ask_handlers(worker, HandlerTargets(worker, is_plugin=True).of("tool:before"), event, CallTerms(5))
    await worker.stop()


@pytest.mark.parametrize("is_async", ["", "async "], ids=["plain", "async"])
async def test_what_one_callback_sets_in_a_context_variable_the_next_of_its_conversation_reads(
    fork_server: ForkServerClient, tmp_path: Path, is_async: str
) -> None:
    source = f"""
        from contextvars import ContextVar

        asked = ContextVar("asked", default="")

        {is_async}def before(**_):
            asked.set(asked.get() + "x")

        {is_async}def guard(**_):
            if asked.get():
                return {{"action": "block", "message": asked.get()}}

        def register(ctx):
            ctx.register_hook("pre_llm_call", before)
            ctx.register_hook("pre_tool_call", guard)
    """
    worker = await started(fork_server, plant(tmp_path, source))

    async def guards(session: str) -> Any:
        meta = CallMeta(target="pre_tool_call", decides=True)
        event = {"tool": "x", "args": {}, "session_key": session}
        return (await worker.call("tool:before", event, meta, 5)).result

    start = {"message_full": "hi", "messages": [], "session_key": "one"}
    for _ in range(2):
        await worker.call("agent:start", start, CallMeta(target="pre_llm_call", decides=True), 5)
    assert "xx" in str(await guards("one"))
    assert await guards("another") is None
    await worker.stop()


def test_a_guard_is_asked_from_the_start_however_its_name_is_written(tmp_path: Path) -> None:
    source = """
        NAMES = "pre_tool_call on_session_end".split()
        def register(ctx):
            for name in NAMES:
                ctx.register_hook(name, getattr(ctx, name, print))
    """
    manifest = inspect(plant(tmp_path, source)).manifest
    assert manifest
    assert "tool:before" in manifest.intercepts
    assert "tool:before" in manifest.reading.guards


async def test_a_plugin_guards_what_its_source_shows_and_subscribes_to_what_it_registers(
    fork_server: ForkServerClient, tmp_path: Path
) -> None:
    source = """
        NAMES = ("pre_tool_call", "post_llm_call", "on_session_end")

        def register(ctx):
            ctx.register_hook(NAMES[0], lambda **_: {"action": "block"})
            ctx.register_hook(NAMES[2], print)
    """
    folder = plant(tmp_path, source)
    seen = inspect(folder)
    assert seen.manifest
    wide = seen.dialect.widen(seen.manifest)
    assert wide.guard
    every = ("tool:before", "tool:after")  # since no call shows the name
    assert (wide.guard.intercepts, wide.reading.guards) == (every, every)
    assert "message:add" in wide.intercepts
    worker = await started(fork_server, folder)
    manifest = apply_registrations(seen.manifest, worker.loaded)
    assert (manifest.intercepts, manifest.events) == (("agent:start", "tool:before"), ("agent:end",))
    assert manifest.reading.guards == ("tool:before",)
    await worker.stop()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\n", "define register(ctx)"),
        ("async def register(ctx): pass\n", "make it a `def`"),
        ("def register(ctx): ctx.register_hook('pre_tool_call', 5)\n", "cannot be called"),
        ("import sys; sys.exit(1)\n", "SystemExit"),
        ("def register(ctx): raise SystemExit(2)\n", "SystemExit"),
    ],
)
async def test_what_cannot_be_loaded_says_why_and_hurts_nobody(
    fork_server: ForkServerClient, tmp_path: Path, source: str, said: str
) -> None:
    with pytest.raises(HookFailed) as caught:
        await started(fork_server, plant(tmp_path, source))
    assert said in str(caught.value)


def test_a_plugin_is_checked_without_being_run(tmp_path: Path) -> None:
    manifest = "name: one\nkind: backend\nprovides_hooks: [kanban_task_claimed]\nrequires_env: [{name: KEY}]\n"
    folder = plant(tmp_path, "def broken(:\n", manifest)
    found = [str(finding) for finding in inspect(folder).findings]
    assert any("__init__.py:1" in one and "invalid syntax" in one for one in found)
    assert any("kanban_task_claimed never fires here" in one for one in found)
    assert any("which only Hermes itself can use" in one for one in found)


@pytest.mark.parametrize(
    "callback",
    [
        "guard",
        "functools.partial(guard)",
        "Guard().check",
        "Guard()",
        "says_other",
    ],
)
async def test_a_decorator_that_takes_everything_gets_everything(
    fork_server: ForkServerClient, tmp_path: Path, callback: str
) -> None:
    source = """
        import functools, inspect

        def only(tool):
            def decorate(function):
                @functools.wraps(function)
                def inner(*args, **kw):
                    if kw.get("tool_name") == tool:
                        return function(*args, kw["args"]["command"])
                return inner
            return decorate

        @only("terminal")
        def guard(command):
            return {"action": "block", "message": "no"} if "boom" in command else None

        class Guard:
            @only("terminal")
            def check(self, command):
                return guard.__wrapped__(command)

            @only("terminal")
            def __call__(self, command):
                return guard.__wrapped__(command)

        def says_other(**kw):
            return guard(**kw)

        says_other.__signature__ = inspect.Signature([inspect.Parameter("x", inspect.Parameter.KEYWORD_ONLY)])

        def register(ctx):
            ctx.register_hook("pre_tool_call", CALLBACK)
    """.replace("CALLBACK", callback)
    worker = await started(fork_server, plant(tmp_path, source))
    targets = HandlerTargets(worker, is_plugin=True).of("tool:before")
    for command, is_denied in (("boom", True), ("ls", False)):
        event = Event("tool:before", {"tool": "shell", "args": {"command": command}, "call_id": "c"})
        assert isinstance(outcome_from(await ask_handlers(worker, targets, event, CallTerms(5.0))), Deny) is is_denied
    await worker.stop(1.0)
