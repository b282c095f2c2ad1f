"""The surroundings of a handler in its process, and its results for the gateway."""

import os
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.hooks.outcome_collector import describe_refused_field
from gateway.hooks.wires.process_handle import read_memory
from gateway.hooks.wires.wire import HookFailed
from gateway.testing.live_gateway import until
from gateway.worker.protocol import CallMeta
from tests.hooks.wires.workshop import Make, lines_of

pytestmark = pytest.mark.process

DECIDES = CallMeta(decides=True, answers={})


async def result(make: Make, source: str, meta: CallMeta = DECIDES, **spec: Any) -> Any:
    worker = await make(source, **spec)
    return (await worker.call("tool:before", {"tool": "shell"}, meta, 60)).result


@pytest.mark.parametrize(
    "source",
    [
        "def handle(event_type, context): return [event_type, context['tool']]",
        "async def handle(event_type, context): return [event_type, context['tool']]",
        "def handle(a, b): return [a, b['tool']]",
        "handle = lambda *both: [both[0], both[1]['tool']]",
        "class Hook:\n  def __call__(self, a, b): return [a, b['tool']]\nhandle = Hook()",
        "class Hook:\n  async def __call__(self, a, b): return [a, b['tool']]\nhandle = Hook()",
        "globals()['handle'] = lambda a, b: [a, b['tool']]",
        "import functools\ndef f(x, a, b): return [a, b['tool']]\nhandle = functools.partial(f, 1)",
        "import asyncio\ndef handle(a, b): return asyncio.ensure_future(asyncio.sleep(0, [a, b['tool']]))",
    ],
)
async def test_whatever_can_be_called_is_a_handler(make: Make, source: str) -> None:
    assert await result(make, source) == ["tool:before", "shell"]


async def test_marked_functions_are_told_of_and_called_by_name(make: Make) -> None:
    worker = await make(
        """
        from gateway.hooks import on
        @on("tool:before", "tool:after", order=-1, when={"tool": "shell"}, on_error="deny", timeout=3)
        async def guard(event): return {"args": {"seen": event.name}}
        @on("llm:before")
        def other(event): return None
        """
    )
    assert not worker.loaded.handle
    guard, other = worker.loaded.marks
    assert (guard.target, guard.names, guard.order, guard.when) == (
        "guard", ("tool:before", "tool:after"), -1, {"tool": "shell"},
    )  # fmt: skip
    assert (guard.on_error, guard.timeout, other.target) == ("deny", 3, "other")
    answer = await worker.call("tool:before", {"tool": "shell"}, CallMeta(decides=True, target="guard"), 60)
    assert answer.result == {"args": {"seen": "tool:before"}}


async def test_a_call_for_a_handle_that_is_not_there_says_so(make: Make) -> None:
    worker = await make("from gateway.hooks import on\n@on('x')\ndef f(event): pass")
    with pytest.raises(HookFailed, match="no `handle`"):
        await worker.call("x", {}, DECIDES, 60)


@pytest.mark.parametrize(
    ("outcome", "data"),
    [
        ("End('bye', 'done')", {"decision": "end", "reply": "bye", "reason": "done"}),
        ("Deny('no')", {"decision": "deny", "message": "no", "soft": False}),
        ("Retry('again', 2)", {"decision": "retry", "message": "again", "delay": 2}),
    ],
)
@pytest.mark.parametrize("verb", ["return", "raise"])
async def test_an_outcome_is_plain_data_returned_or_raised(make: Make, verb: str, outcome: str, data: Any) -> None:
    source = f"from gateway.hooks import Deny, End, Retry\ndef handle(e, c): {verb} {outcome}"
    assert await result(make, source) == data


async def test_options_environment_and_nothing_else(make: Make) -> None:
    found = await result(
        make,
        "import os\ndef handle(e, c): return [c.options, dict(os.environ), open('/proc/self/environ').read()]",
        options={"threshold": 3},
        env={"API_KEY": "k"},
    )
    assert found == [{"threshold": 3}, {"API_KEY": "k"}, ""]


async def test_the_time_of_day_is_that_of_its_zone(make: Make) -> None:
    source = "import datetime\ndef handle(e, c): return {'hour': datetime.datetime.fromtimestamp(0).hour}"
    assert await result(make, source, env={"TZ": "JST-9"}) == {"hour": 9}


async def test_calls_run_side_by_side_each_in_its_own_conversation(make: Make) -> None:
    worker = await make(
        """
        import asyncio
        from gateway.session_context import get_session_env
        async def handle(e, c):
            await asyncio.sleep(0.02)
            names = ("HERMES_SESSION_PLATFORM", "HERMES_SESSION_CHAT_ID", "HERMES_HOME")
            return [get_session_env(name, "none") for name in names]
        """,
        env={"HERMES_HOME": "/h"},
    )
    found: dict[str, Any] = {}

    async def told(platform: str) -> None:
        meta = CallMeta(decides=True, session={"PLATFORM": platform})
        found[platform] = (await worker.call("x", {}, meta, 60)).result

    async with anyio.create_task_group() as tasks:
        for platform in ("telegram", "slack"):
            tasks.start_soon(told, platform)
    assert found == {p: [p, "none", "/h"] for p in ("telegram", "slack")}


async def test_one_loop_lasts(make: Make) -> None:
    """Tasks, clients and child processes of a handler live on between its calls."""
    worker = await make(
        """
        import asyncio
        ticks = 0
        async def tick():
            global ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)
        task = asyncio.ensure_future(tick())
        loops = set()
        def handle(e, c):
            loops.add(asyncio.get_event_loop())
            return [len(loops), ticks]
        """
    )
    ticks = 0
    while ticks < 3:
        loops, ticks = (await worker.call("x", {}, DECIDES, 60)).result
        assert loops == 1


async def test_the_module_is_what_handlers_presume(make: Make) -> None:
    source = """
    from __future__ import annotations
    import dataclasses, pathlib, pickle, sys, typing
    @dataclasses.dataclass
    class Node:
        next: Node | None = None
    def handle(e, c):
        me = sys.modules[__name__]
        return [__name__, pathlib.Path(__file__).name, me.handle is handle, sys.argv == [__file__],
                list(typing.get_type_hints(Node)), type(pickle.loads(pickle.dumps(Node()))).__name__]
    """
    assert await result(make, source) == ["hermes_hook_probe", "handler.py", True, True, ["next"], "Node"]


async def test_the_gateways_insides_are_not_there_and_the_error_says_what_is(make: Make) -> None:
    with pytest.raises(HookFailed) as failed:
        await make("import gateway.engine")
    assert str(failed.value).startswith(
        "handler.py:1: ModuleNotFoundError: gateway.engine is not there for hooks; "
        "of the gateway they may import gateway.config, gateway.events, gateway.hooks, "
    )


async def test_modules_can_be_offered_by_name(make: Make, tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text("def load(): return {'home': 1}")
    modules = {"hermes_cli": "", "hermes_cli.config": str(tmp_path / "config.py")}
    source = "from hermes_cli.config import load\ndef handle(e, c): return load()"
    assert await result(make, source, modules=modules) == {"home": 1}


async def test_its_own_dependencies_come_first(make: Make, tmp_path: Path) -> None:
    (tmp_path / "deps").mkdir()
    (tmp_path / "deps" / "leftpad.py").write_text("V = 7")
    source = "import leftpad\ndef handle(e, c): return leftpad.V"
    assert await result(make, source, path=(str(tmp_path / "deps"),)) == 7


async def test_prints_logs_and_tracebacks_go_to_its_log(make: Make, tmp_path: Path) -> None:
    worker = await make(
        """
        import logging, subprocess
        def handle(e, c):
            print("printed")
            logging.getLogger("mine").info("logged")
            subprocess.run(["echo", "by a child"])
            raise ValueError("broken")
        """,
        env={"PATH": os.environ["PATH"]},
    )
    with pytest.raises(HookFailed, match=r"^handler.py:7: ValueError: broken$") as failed:
        await worker.call("x", {}, DECIDES, 60)
    assert 'raise ValueError("broken")' in failed.value.traceback
    assert "calls.py" not in failed.value.traceback
    await worker.stop()
    log = lines_of(tmp_path / "probe.log")
    assert log[:3] == ["printed", "INFO mine: logged", "by a child"]
    assert log[-1] == "ValueError: broken"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("c['mesage']", "x has no 'mesage'; did you mean 'message'?"),
        ("c.options['limt']", "context.options has no 'limt'; did you mean 'limit'?"),
        ("c.message", "context has no attribute 'message'; did you mean context['message']?"),
        ("c.option", "did you mean context.options?"),
        ("c.store.get('a')", "did you mean context.gateway.store?"),
    ],
)
async def test_a_misspelled_key_is_named_with_the_one_that_was_meant(make: Make, body: str, said: str) -> None:
    worker = await make(f"def handle(e, c): {body}", options={"limit": 3})
    with pytest.raises(HookFailed, match=re.escape(said)):
        await worker.call("x", {"message": "hello"}, DECIDES, 60)


async def test_a_misspelled_change_is_refused_by_its_name(make: Make) -> None:
    worker = await make("def handle(e, c): c['respons'] = 'x'; c['my_own'] = 1")
    decides = CallMeta(decides=True, answers={}, writable=("response",))
    answer = await worker.call("agent:end", {"response": "y"}, decides, 60)
    assert (answer.refused, answer.changed) == (("respons",), {})
    told = describe_refused_field("agent:end", *answer.refused, writable=("response",))
    assert told.endswith("left as it was; did you mean 'response'?")


async def test_a_traceback_shows_the_lines_of_the_author_alone(make: Make) -> None:
    worker = await make(
        """
        import json
        from pathlib import Path
        def handle(e, c):
            try:
                json.loads("{")
            except ValueError:
                Path("/nowhere").read_text()
        """
    )
    with pytest.raises(HookFailed) as failed:
        await worker.call("x", {}, DECIDES, 60)
    lines = [line for line in failed.value.traceback.splitlines() if line.startswith("  File")]
    assert [line.partition("line ")[2] for line in lines] == ["6, in handle", "8, in handle"]
    assert "JSONDecodeError" in failed.value.traceback


async def test_its_memory_is_known_while_it_lives(make: Make) -> None:
    worker = await make("kept = bytearray(b'x') * (8 << 20)\ndef handle(e, c): return None")
    assert 8 << 20 < read_memory(worker.process.pid) < 64 << 20
    await worker.stop()
    assert read_memory(worker.process.pid) == 0


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ("import time; time.sleep(60)", 'handler.py", line 2 in handle'),
        ("await asyncio.sleep(60)", "line 2, in handle"),
    ],
)
async def test_where_it_hangs_is_known(make: Make, body: str, where: str) -> None:
    for limit in (3, 30):  # so long that the handler has begun, also where the machine stands still
        worker = await make(f"import asyncio\nasync def handle(e, c): {body}")
        with pytest.raises(HookFailed) as failed:
            await worker.call("x", {}, DECIDES, limit)
        assert failed.value.kind == "timeout"
        if where in failed.value.traceback:
            break
    assert where in failed.value.traceback
    assert where in worker.process.hangs
    assert "calls.py" not in failed.value.traceback


async def test_a_call_that_nobody_waits_for_any_more_is_cancelled(make: Make) -> None:
    worker = await make(
        """
        import asyncio
        seen = []
        async def handle(e, c):
            if e == "ask": return seen
            seen.append("begun")
            try: await asyncio.sleep(60)
            except asyncio.CancelledError: seen.append("cancelled"); raise
        """
    )

    async def has_seen(*what: str) -> bool:
        return bool((await worker.call("ask", {}, DECIDES, 60)).result == [*what])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.call, "x", {}, DECIDES, 60)
        await until(lambda: has_seen("begun"))
        tasks.cancel_scope.cancel()
    await until(lambda: has_seen("begun", "cancelled"))


async def test_memory_that_ran_out_wears_a_worker(make: Make) -> None:
    worker = await make("def handle(e, c): bytearray(1 << 30)", memory=64 << 20)
    assert not worker.is_worn
    with pytest.raises(HookFailed, match="MemoryError"):
        await worker.call("x", {}, DECIDES, 60)
    assert worker.is_worn


async def test_after_its_end_every_call_says_why(make: Make) -> None:
    worker = await make("import os\ndef handle(e, c): os._exit(9)")
    for _ in range(2):
        with pytest.raises(HookFailed, match="exit code 9") as failed:
            await worker.call("x", {}, DECIDES, 60)
        assert failed.value.kind == "died"
    assert worker.gone.reason == "its process ended with exit code 9"


async def test_stopping_lets_calls_finish_and_exit_functions_run(make: Make, tmp_path: Path) -> None:
    worker = await make(
        """
        import asyncio, atexit
        atexit.register(print, "at exit")
        async def background():
            try: await asyncio.sleep(60)
            finally: print("cancelled")
        async def handle(e, c):
            asyncio.get_running_loop().keep = asyncio.create_task(background())
            await asyncio.sleep(0.05)
            return "done"
        """
    )
    found: list[Any] = []

    async def tell() -> None:
        found.append((await worker.call("x", {}, DECIDES, 60)).result)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell)
        await anyio.wait_all_tasks_blocked()
        await worker.stop(60)
    assert found == ["done"]
    assert worker.gone.reason == "stopped"
    assert lines_of(tmp_path / "probe.log") == ["cancelled", "at exit"]


async def test_large_events_and_answers_pass(make: Make) -> None:
    text = "é" * 3_000_000
    worker = await make("def handle(e, c): return c['text']")
    assert (await worker.call("x", {"text": text}, DECIDES, 60)).result == text
