"""A hook that fails, hangs, exits, or is cancelled."""

import asyncio
import contextlib
from typing import Any

import anyio
import pytest

from gateway.hooks import Deny, End, HookRegistry
from gateway.hooks.hook import HookTraits

FAILURES = [RuntimeError("broken"), SystemExit(3), TimeoutError("late"), OSError("gone")]


def failing(error: BaseException):
    def broken(event) -> None:
        raise error

    return broken


@pytest.mark.row("SHE-7")
@pytest.mark.row("EDG-8")
@pytest.mark.row("EDG-72")
@pytest.mark.row("WEB-16")
@pytest.mark.row("STR-73")
@pytest.mark.parametrize("error", FAILURES, ids=repr)
async def test_skip_logs_the_failure_and_the_next_hook_runs(error, caplog) -> None:
    hooks = HookRegistry()
    seen: list[Any] = []
    hooks.on("tool:before", failing(error), key="broken")
    hooks.on("tool:before", seen.append)
    event = await hooks.run("tool:before", tool="x")
    assert (len(seen), event.outcome) == (1, None)
    assert f"broken failed at tool:before: {type(error).__name__}" in caplog.text


@pytest.mark.row("STR-73")
@pytest.mark.parametrize("error", FAILURES, ids=repr)
async def test_deny_denies_and_stops_the_chain(error) -> None:
    hooks = HookRegistry()
    seen: list[Any] = []
    hooks.on("tool:before", failing(error), key="guard", on_error="deny")
    hooks.on("tool:before", seen.append)
    event = await hooks.run("tool:before", tool="x")
    assert isinstance(event.outcome, Deny)
    assert event.outcome.text == f"guard guards this and failed ({type(error).__name__})."
    assert seen == []


@pytest.mark.row("SHE-7")
@pytest.mark.row("STR-14")
@pytest.mark.row("STR-73")
async def test_raise_gives_the_error_to_who_fired_the_event_and_stops_the_chain() -> None:
    hooks = HookRegistry()
    seen: list[Any] = []
    hooks.on("tool:before", failing(KeyError("mine")), on_error="raise")
    hooks.on("tool:before", seen.append)
    with pytest.raises(KeyError, match="mine"):
        await hooks.run("tool:before", tool="x")
    assert seen == []


async def test_a_hook_that_exits_does_so_where_errors_are_to_be_raised() -> None:
    hooks = HookRegistry()
    wanted = SystemExit(3)
    hooks.on("tool:before", failing(wanted), on_error="raise", key="quitter")
    with pytest.raises(SystemExit) as raised:
        await hooks.run("tool:before", tool="x")
    assert raised.value is wanted


@pytest.mark.parametrize("on_error", ["skip", "raise", "deny"])
async def test_a_keyboard_interrupt_is_never_held_up(on_error) -> None:
    hooks = HookRegistry()
    hooks.on("tool:before", failing(KeyboardInterrupt()), on_error=on_error)
    with pytest.raises(KeyboardInterrupt):
        await hooks.run("tool:before", tool="x")


@pytest.mark.row("SHE-39")
@pytest.mark.parametrize("on_error", ["skip", "raise", "deny"])
async def test_a_cancellation_passes_whatever_the_policy(on_error) -> None:
    hooks = HookRegistry()
    seen: list[Any] = []
    started = asyncio.Event()

    @hooks.on("tool:before", on_error=on_error)
    async def hang(event) -> None:
        started.set()
        await anyio.sleep_forever()

    hooks.on("tool:before", seen.append)
    task = asyncio.create_task(hooks.run("tool:before", tool="x"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == []
    assert hooks.hooks[0].failures == 0


@pytest.mark.row("SHE-39")
async def test_a_cancel_scope_around_an_event_ends_it() -> None:
    hooks = HookRegistry()
    hooks.on("tool:before", lambda event: anyio.sleep_forever(), on_error="deny")
    with anyio.move_on_after(0.01) as scope:
        await hooks.run("tool:before", tool="x")
    assert scope.cancelled_caught


async def test_a_hook_that_is_cancelled_by_itself_has_failed_and_the_operation_goes_on(caplog) -> None:
    """A hook that awaits a task of its own which was cancelled looks like a cancellation, and is none."""
    hooks = HookRegistry()
    seen: list[Any] = []

    @hooks.on("tool:before", key="clumsy")
    async def clumsy(event) -> None:
        inner = asyncio.create_task(anyio.sleep_forever())
        inner.cancel()
        await inner

    hooks.on("tool:before", seen.append)
    await hooks.run("tool:before", tool="x")
    assert len(seen) == 1
    assert "clumsy failed at tool:before: CancelledError" in caplog.text


async def test_a_hook_over_its_own_time_has_failed_and_the_next_one_runs(caplog) -> None:
    hooks = HookRegistry()
    seen: list[Any] = []
    hooks.on("tool:before", lambda event: anyio.sleep_forever(), timeout=0.01, key="slow")
    hooks.on("tool:before", seen.append)
    await hooks.run("tool:before", tool="x")
    assert len(seen) == 1
    assert "slow failed at tool:before: TimeoutError: it took longer than 0.01 s" in caplog.text


async def test_a_timeout_of_the_hooks_own_making_is_not_taken_for_ours(caplog) -> None:
    hooks = HookRegistry()

    @hooks.on("tool:before", timeout=5, key="caller")
    async def caller(event) -> None:
        async with asyncio.timeout(0.001):
            await anyio.sleep_forever()

    await hooks.run("tool:before", tool="x")
    assert "caller failed at tool:before: TimeoutError" in caplog.text
    assert "it took longer" not in caplog.text


async def test_a_hook_with_a_limit_may_answer_and_may_be_a_plain_function() -> None:
    hooks = HookRegistry()
    hooks.on("my:event", lambda event: {"a": 1}, timeout=5)

    @hooks.on("my:event", timeout=5)
    async def also(event) -> dict[str, Any]:
        return {"b": 2}

    event = await hooks.run("my:event")
    assert (event["a"], event["b"]) == (1, 2)


async def test_all_hooks_of_an_event_have_one_limit_and_who_guards_denies_when_it_is_over(caplog) -> None:
    hooks = HookRegistry(limit=0.04)
    seen: list[Any] = []
    hooks.on("tool:before", lambda event: {"tool": "changed"})
    hooks.on("tool:before", lambda event: anyio.sleep_forever(), key="slow")
    hooks.on("tool:before", seen.append, key="late")
    guard = hooks.on("tool:before", seen.append, key="guard", on_error="deny")
    guard.hooks[0].traits = HookTraits(remedy="switch it off")
    hooks.on("tool:before", seen.append, key="later")
    async with hooks:
        event = await hooks.run("tool:before", tool="x")
    assert isinstance(event.outcome, Deny)
    late = "the hooks of tool:before took longer than 0.04 s"
    assert event.outcome.text == f"guard guards this and failed: {late}\nswitch it off"
    assert event["tool"] == "changed"
    assert seen == []
    assert "slow failed at tool:before: TimeoutError: the hooks of tool:before took longer than 0.04 s" in caplog.text
    failures = {hook.key: hook.failures for hook in hooks.hooks[1:]}
    assert failures == {"slow": 1, "late": 1, "guard": 1, "later": 0}


async def test_after_a_limit_the_task_is_as_it_was() -> None:
    hooks = HookRegistry(limit=0.02)
    hooks.on("tool:before", lambda event: anyio.sleep_forever())
    task = asyncio.current_task()
    assert task
    for _ in range(2):
        await hooks.run("tool:before", tool="x")
        assert task.cancelling() == 0
        await asyncio.sleep(0)


async def test_a_hook_that_swallows_the_cancellation_is_cancelled_again() -> None:
    hooks = HookRegistry(limit=0.02)
    swallowed = []

    @hooks.on("tool:before")
    async def stubborn(event) -> None:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            swallowed.append(True)

    hooks.on("tool:before", lambda event: anyio.sleep_forever(), on_error="deny")
    event = await hooks.run("tool:before", tool="x")
    assert swallowed
    assert isinstance(event.outcome, Deny)


async def test_a_cancellation_that_comes_with_the_limit_still_passes() -> None:
    hooks = HookRegistry(limit=0.02)
    held = asyncio.Event()

    @hooks.on("tool:before")
    async def slow_to_end(event) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            held.set()
            await anyio.sleep_forever()

    task = asyncio.create_task(hooks.run("tool:before", tool="x"))
    await held.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_limit_works_in_a_task_that_was_cancelled_and_is_cleaning_up() -> None:
    hooks = HookRegistry(limit=0.02)
    hooks.on("tool:after", lambda event: anyio.sleep_forever(), key="slow")
    outcome = []

    async def turn() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                outcome.append(await hooks.run("tool:after", result=1))

    task = asyncio.create_task(turn())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert outcome[0]["result"] == 1
    assert hooks.hooks[0].failures == 1


async def test_an_event_within_an_event_has_its_own_limit_and_the_outer_one_keeps_its_own() -> None:
    hooks = HookRegistry(limit=5)

    @hooks.on("outer:event")
    async def fire(event) -> dict[str, Any]:
        inner = await hooks.run("inner:event")
        return {"inner": inner["done"]}

    @hooks.on("inner:event")
    async def quick(event) -> dict[str, Any]:
        await asyncio.sleep(0.001)
        return {"done": True}

    assert (await hooks.run("outer:event"))["inner"] is True


async def test_the_observers_are_told_when_an_interceptor_raises_or_is_cancelled() -> None:
    hooks, told = HookRegistry(), []
    hooks.watch("tool:before", lambda name, context: told.append(context["tool"]))
    hooks.on("tool:before", failing(ValueError("x")), when={"tool": "a"}, on_error="raise")
    hooks.on("tool:before", lambda event: anyio.sleep_forever(), when={"tool": "b"})
    async with hooks:
        with pytest.raises(ValueError, match="x"):
            await hooks.run("tool:before", tool="a")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await hooks.run("tool:before", tool="b")
        await hooks.settled()
    assert told == ["a", "b"]


@pytest.mark.row("EDG-7")
async def test_an_outcome_before_a_failure_stands() -> None:
    hooks = HookRegistry()
    hooks.on("tool:before", lambda event: End("bye"))
    hooks.on("tool:before", failing(ValueError("x")), on_error="raise")
    assert isinstance((await hooks.run("tool:before", tool="x")).outcome, End)
