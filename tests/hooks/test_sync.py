"""Events for callers who cannot await: without a loop, in a thread, and in a plain function below a running loop."""

import asyncio
import threading
from typing import Any

import anyio
import pytest

from gateway.events import Deny, Event, Pause
from gateway.hooks import HookRegistry
from gateway.hooks.cause import MAX_DEPTH


def add(letter: str) -> Any:
    def hook(event: Event) -> None:
        event["text"] += letter

    return hook


async def add_unawaited(event: Event) -> dict[str, str]:
    return {"text": event["text"] + "c"}


async def wait(event: Event) -> None:
    await asyncio.sleep(0)


def make_registry() -> HookRegistry:
    hooks = HookRegistry()
    hooks.on("my:event", add("a"))
    hooks.on("my:*", add("b"), timeout=5)
    hooks.on("my:event", add_unawaited, order=1)
    return hooks


def test_without_a_loop() -> None:
    assert make_registry().run_sync("my:event", text="")["text"] == "abc"


def test_in_a_plain_function_below_a_running_loop() -> None:
    async def main() -> tuple[str, str]:
        hooks, told = make_registry(), []
        hooks.watch("my:event", lambda name, event: told.append(event["text"]))
        async with hooks:
            text = hooks.run_sync("my:event", text="")["text"]
            await hooks.settled()
        return text, told[0]

    assert asyncio.run(main()) == ("abc", "abc")


def test_in_threads_while_the_loop_runs_events_of_its_own() -> None:
    """Whose chain is whose is kept by thread and by task: nobody is taken for caused by another's event."""
    hooks = HookRegistry()
    causes: list[Any] = []
    inside, go_on = threading.Event(), threading.Event()

    async def hold(event: Event) -> None:
        inside.set()
        await asyncio.to_thread(go_on.wait)

    hooks.on("loop:event", hold)
    hooks.on("my:event", lambda event: causes.append(hooks.run_sync("my:inner", text="").get("cause")))
    hooks.on("my:inner", lambda event: None)

    def beside() -> None:
        inside.wait()
        for _ in range(20):
            hooks.run_sync("my:event", id="outer")
        go_on.set()

    async def main() -> None:
        async with hooks:
            thread = asyncio.create_task(asyncio.to_thread(beside))
            await hooks.run("loop:event")
            await thread

    asyncio.run(main())
    assert causes == ["outer"] * 20


@pytest.mark.parametrize("in_loop", [False, True])
def test_who_would_have_to_wait_is_named_and_nothing_is_left_behind(in_loop: bool) -> None:
    hooks = HookRegistry()
    closed: list[str] = []

    async def slow(event: Event) -> None:
        try:
            await wait(event)
        finally:
            closed.append("slow")

    hooks.on("my:event", add("a"))
    hooks.on("my:event", slow, key="the-slow-one", on_error="skip")
    hooks.on("my:event", lambda event: closed.append("later"))

    async def main() -> None:
        async with hooks:
            refused()
            assert (await hooks.run("my:event", text=""))["text"] == "a"

    def refused() -> None:
        with pytest.raises(RuntimeError, match=r"the-slow-one has to wait at my:event, "):
            hooks.run_sync("my:event", text="")
        assert closed == ["slow"]

    asyncio.run(main()) if in_loop else refused()
    assert not hooks._deadlines.chains


WAITS: dict[str, Any] = {
    "sleep": lambda: asyncio.sleep(1),
    "timeout": lambda: asyncio.wait_for(asyncio.sleep(1), 5),
    "thread": lambda: asyncio.to_thread(int),
    "anyio": lambda: anyio.sleep(1),
    "queue": lambda: asyncio.Queue().get(),
}


@pytest.mark.parametrize("way", WAITS)
def test_a_guard_that_asks_for_a_loop_is_refused_and_not_passed_over(way: str) -> None:
    hooks = HookRegistry()

    async def guard(event: Event) -> Deny:
        await WAITS[way]()
        return Deny("no")

    hooks.on("my:event", guard, key="guard", on_error="skip")
    hooks.on("my:plain", lambda event: WAITS[way](), key="plain", on_error="skip")
    for name, key in (("my:event", "guard"), ("my:plain", "plain")):
        with pytest.raises(RuntimeError, match=f"{key} has to wait at {name}, "):
            hooks.run_sync(name)


def test_work_that_a_hook_leaves_to_a_loop_is_refused_where_there_is_none() -> None:
    hooks = HookRegistry()
    begun: list[asyncio.Task[None]] = []

    async def leave(event: Event) -> None:
        begun.append(asyncio.create_task(asyncio.sleep(0)))

    hooks.on("my:event", leave, key="leaver")
    with pytest.raises(RuntimeError, match="leaver has to wait"):
        hooks.run_sync("my:event")
    assert begun[0].cancelled()


def test_what_needs_a_loop_and_does_not_wait_is_let_through() -> None:
    hooks = HookRegistry()

    async def look(event: Event) -> dict[str, Any]:
        async with asyncio.timeout(5), asyncio.Lock():
            inner = await hooks.run("my:inner")
        return {"text": inner["cause"]}

    hooks.on("my:event", lambda event: asyncio.run(wait(event)), on_error="raise")
    hooks.on("my:event", look)
    hooks.on("my:inner", lambda event: None)
    assert hooks.run_sync("my:event", id="outer")["text"] == "outer"


def test_outcomes_questions_and_failures_are_as_elsewhere() -> None:
    hooks = HookRegistry()
    hooks.on("a:denied", lambda event: Deny("no"))
    hooks.on("a:broken", lambda event: 1 / 0, on_error="deny", key="guard")
    hooks.on("a:raising", lambda event: 1 / 0, on_error="raise")
    hooks.on("a:asking", lambda event: event.ask("May I?"))
    hooks.on("a:cancelled", lambda event: (_ for _ in ()).throw(asyncio.CancelledError()))
    assert hooks.run_sync("a:denied").outcome.text == "no"  # type: ignore[union-attr]
    assert "guard guards this and failed" in str(hooks.run_sync("a:broken").outcome)
    assert hooks.run_sync("a:cancelled").outcome is None
    with pytest.raises(ZeroDivisionError):
        hooks.run_sync("a:raising")
    with pytest.raises(Pause):
        hooks.run_sync("a:asking")


def test_hooks_that_fire_events_without_end_are_stopped_by_the_depth() -> None:
    hooks = HookRegistry()
    calls: list[int] = []

    def again(event: Event) -> None:
        calls.append(1)
        hooks.run_sync("my:event")

    async def again_in_a_coroutine(event: Event) -> None:
        again(event)

    hooks.on("my:event", again)
    hooks.run_sync("my:event")
    assert len(calls) == MAX_DEPTH + 1
    hooks.clear()
    hooks.on("my:event", again_in_a_coroutine)
    hooks.run_sync("my:event")
    assert len(calls) == 2 * (MAX_DEPTH + 1)
