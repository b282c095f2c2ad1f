"""The requests of a hook to the gateway, from every kind of handler."""

from typing import Any

import anyio
import pytest

from gateway.hooks.wires.wire import HookFailed
from gateway.worker.protocol import CallMeta
from tests.hooks.wires.workshop import Make
from tests.spine import until

pytestmark = pytest.mark.process

DECIDES = CallMeta(decides=True, event="event-1")


async def result(make: Make, source: str, **more: Any) -> Any:
    worker = await make(source, **more)
    return (await worker.call("x", {}, DECIDES, 60)).result


SEND = {"verb": "send", "params": {"to": "me", "text": "hi"}, "during": "event-1"}


HANDLERS = {
    "plain": "def handle(e, c): return c.gateway.send('me', 'hi')",
    "awaited": "async def handle(e, c): return await c.gateway.send('me', 'hi')",
    "kept": """
        async def handle(e, c):
            reply = c.gateway.send(to='me', text='hi')
            return await reply
        """,
    "helper": """
        async def ask(c): return await c.gateway.send('me', 'hi')
        handle = lambda e, c: ask(c)
        """,
    "thread": """
        import asyncio
        async def handle(e, c): return await asyncio.to_thread(c.gateway.send, 'me', 'hi')
        """,
    "loop in a thread": """
        import asyncio
        async def handle(e, c):
            async def ask(): return await c.gateway.send('me', 'hi')
            return await asyncio.to_thread(asyncio.run, ask())
        """,
    "result": "async def handle(e, c): return c.gateway.send('me', 'hi').result()",
    "callback": """
        import asyncio
        async def handle(e, c):
            loop = asyncio.get_running_loop()
            done = loop.create_future()
            loop.call_soon(lambda: done.set_result(c.gateway.send('me', 'hi')))
            return await done
        """,
}


@pytest.mark.parametrize("source", HANDLERS.values(), ids=HANDLERS)
async def test_a_handler_sends(make: Make, source: str) -> None:
    assert await result(make, source) == SEND


async def test_every_verb(make: Make) -> None:
    source = """
    def handle(e, c):
        g = c.gateway
        answers = [g.submit("do it", session="s"), g.emit("my:event", name="n"), g.store.get("k", 1),
                   g.store.set("k", [2]), g.store.delete("k"), g.store.keys()]
        return [[a["verb"], a["params"]] for a in answers]
    """
    assert await result(make, source) == [
        ["submit", {"text": "do it", "session": "s"}],
        ["emit", {"name": "my:event", "fields": {"name": "n"}}],
        ["store.get", {"key": "k", "default": 1}],
        ["store.set", {"key": "k", "value": [2]}],
        ["store.delete", {"key": "k"}],
        ["store.keys", {}],
    ]


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_refusal_is_raised_and_logged(make: Make, kind: str, tmp_path: Any) -> None:
    async def refuse(verb: str, params: dict[str, Any], during: str) -> Any:
        raise PermissionError("write `uses: [send]` in HOOK.yaml")

    call = "c.gateway.send('me', 'hi')"
    worker = await make(f"{kind} handle(e, c): {'await ' if 'async' in kind else ''}{call}", serve=refuse)
    with pytest.raises(HookFailed, match=r"handler.py:1: RuntimeError: write `uses: \[send\]` in HOOK.yaml"):
        await worker.call("x", {}, DECIDES, 60)
    await worker.stop()
    assert "the gateway refused: write `uses: [send]`" in (tmp_path / "probe.log").read_text()


async def test_what_nobody_waits_for_is_done_all_the_same(make: Make) -> None:
    asked: list[str] = []

    async def note(verb: str, params: dict[str, Any], during: str) -> Any:
        asked.append(params["text"])

    worker = await make("async def handle(e, c):\n  for n in range(300): c.gateway.send('me', str(n))", serve=note)
    await worker.call("x", {}, DECIDES, 60)
    await until(lambda: len(asked) == 300)
    assert sorted(asked, key=int) == [str(n) for n in range(300)]


async def test_a_background_task_keeps_what_caused_it(make: Make) -> None:
    caused: list[str] = []

    async def note(verb: str, params: dict[str, Any], during: str) -> Any:
        caused.append(during)

    source = """
    import asyncio
    async def later(c):
        await asyncio.sleep(0.01)
        await c.gateway.emit("my:event")
    async def handle(e, c): c.gateway.keep = asyncio.create_task(later(c))
    """
    worker = await make(source, serve=note)
    await worker.call("x", {}, DECIDES, 60)
    await until(lambda: caused)
    assert caused == ["event-1"]


async def test_calls_that_come_while_a_plain_handler_waits_are_not_lost(make: Make) -> None:
    """The waiting call reads the wire itself, and what else arrives has to wait for the loop."""
    is_asked, may_answer = anyio.Event(), anyio.Event()

    async def slow(verb: str, params: dict[str, Any], during: str) -> Any:
        is_asked.set()
        await may_answer.wait()

    worker = await make("def handle(e, c):\n  if e == 'waits': c.gateway.send('me', 'hi')\n  return e", serve=slow)
    found: list[str] = []

    async def tell(name: str) -> None:
        found.append((await worker.call(name, {}, DECIDES, 60)).result)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell, "waits")
        await is_asked.wait()
        for n in range(20):
            tasks.start_soon(tell, f"quick {n}")
        await anyio.wait_all_tasks_blocked()
        may_answer.set()
    assert sorted(found) == sorted(["waits", *(f"quick {n}" for n in range(20))])


async def test_a_fork_of_the_handler_cannot_speak_for_it(make: Make) -> None:
    source = """
    import os
    def handle(e, c):
        pid = os.fork()
        if pid == 0:
            try: c.gateway.send("me", "from the child")
            except RuntimeError as error: os._exit(42 if "forked" in str(error) else 1)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    """
    assert await result(make, source) == 42


async def test_threads_and_the_loop_may_ask_at_once(make: Make) -> None:
    source = """
    import asyncio
    async def handle(e, c):
        text = "x" * 20_000
        threads = [asyncio.to_thread(c.gateway.send, "me", text) for _ in range(20)]
        awaited = [c.gateway.send("me", text) for _ in range(20)]
        return len([a for a in await asyncio.gather(*threads, *awaited) if a["params"]["text"] == text])
    """
    assert await result(make, source) == 40
