"""Observers: told in the background, in order, of what has been decided."""

import asyncio
import logging
import threading
from contextvars import ContextVar

import anyio
import pytest

from gateway.hooks import Deny, End, HookRegistry
from tests.spine import until


@pytest.mark.row("EDG-39")
@pytest.mark.row("WEB-40")
async def test_an_observer_gets_the_name_and_a_copy_by_name_or_pattern() -> None:
    told = []
    async with HookRegistry() as hooks:
        for pattern in ("a:b", "a:*", "*", "x:y"):
            hooks.watch(pattern, lambda name, context, pattern=pattern: told.append((pattern, name, context["n"])))
        hooks.emit("a:b", n=1)
        await hooks.settled()
    assert sorted(told) == [("*", "a:b", 1), ("a:*", "a:b", 1), ("a:b", "a:b", 1)]


async def test_emit_waits_for_nobody() -> None:
    release, told = asyncio.Event(), []

    async def slow(name, context) -> None:
        await release.wait()
        told.append(context["n"])

    async with HookRegistry() as hooks:
        hooks.watch("a:b", slow)
        hooks.watch("a:b", lambda name, context: told.append(f"quick {context['n']}"))
        for n in range(3):
            hooks.emit("a:b", n=n)
        assert told == []
        await until(lambda: len(told) == 3)
        assert told == ["quick 0", "quick 1", "quick 2"], "a slow observer holds up nobody but itself"
        release.set()
        await hooks.settled()
    assert told[3:] == [0, 1, 2]


async def test_each_observer_has_a_copy_of_its_own_that_it_may_write_to() -> None:
    told = []

    def scribble(name, context) -> None:
        context["tool"] = "mine"
        context["added"] = True

    async with HookRegistry() as hooks:
        hooks.watch("tool:before", scribble)
        hooks.watch("tool:before", lambda name, context: told.append(dict(context)))
        event = await hooks.run("tool:before", tool="shell")
        await hooks.settled()
    assert told[0]["tool"] == event["tool"] == "shell"
    assert "added" not in told[0]


@pytest.mark.parametrize("outcome", [None, Deny("no"), End("bye")])
async def test_observers_see_the_final_values_and_the_outcome(outcome) -> None:
    told = []
    async with HookRegistry() as hooks:
        hooks.watch("tool:before", lambda name, context: told.append((context["tool"], context.outcome, context["id"])))
        hooks.on("tool:before", lambda event: {"tool": "changed"})
        hooks.on("tool:before", lambda event: outcome)
        event = await hooks.run("tool:before", tool="shell")
        event["tool"] = "changed later"
        await hooks.settled()
    assert told == [("changed", outcome, event["id"])]


async def test_what_the_caller_changes_after_run_is_not_what_was_told() -> None:
    told = []
    async with HookRegistry() as hooks:
        hooks.watch("my:event", lambda name, context: told.append(dict(context)))
        event = await hooks.run("my:event", a=1)
        event["a"] = 2
        await hooks.settled()
    assert told[0]["a"] == 1


async def test_all_observers_of_an_event_see_one_id_one_time_one_cause() -> None:
    told = []
    async with HookRegistry() as hooks:
        for _ in range(2):
            hooks.watch(
                "my:event", lambda name, context: told.append((context["id"], context["time"], context["cause"]))
            )
        hooks.emit("my:event")
        hooks.emit("my:event")
        await hooks.settled()
    first, second = sorted(set(told))
    assert told.count(first) == told.count(second) == 2


async def test_an_observer_that_fails_is_logged_and_told_of_the_next_event(caplog) -> None:
    told = []

    def broken(name, context) -> None:
        told.append(context["n"])
        raise [ValueError("x"), SystemExit(1), Deny("no"), asyncio.CancelledError()][context["n"]]

    async with HookRegistry() as hooks:
        hooks.watch("a:b", broken, key="broken")
        for n in range(4):
            hooks.emit("a:b", n=n)
        await hooks.settled()
        assert hooks.hooks[0].failures == 4
    assert told == [0, 1, 2, 3]
    assert "broken failed at a:b: ValueError: x" in caplog.text


async def test_emit_is_safe_before_the_registry_is_open_and_after_it_is_closed() -> None:
    told = []
    hooks = HookRegistry()
    hooks.watch("a:b", lambda name, context: told.append(context["n"]))
    hooks.emit("a:b", n=1)
    await hooks.run("a:b", n=2)
    assert told == []
    async with hooks:
        await hooks.settled()
        assert told == [1, 2], "what was told before waits"
    hooks.emit("a:b", n=3)
    await hooks.run("a:b", n=4)
    hooks.watch("a:b", lambda name, context: told.append("late"))
    hooks.emit("a:b", n=5)
    assert told == [1, 2], "what is told after is dropped"


async def test_a_registry_opens_once() -> None:
    hooks = HookRegistry()
    async with hooks:
        with pytest.raises(RuntimeError, match="opens once"):
            async with HookRegistry(parent=hooks):
                pass
    with pytest.raises(RuntimeError, match="opens once"):
        async with hooks:
            pass


async def test_to_settle_needs_an_open_registry_unless_there_is_nothing_to_do() -> None:
    hooks = HookRegistry()
    hooks.watch("a:b", lambda name, context: None)
    await hooks.settled()
    hooks.emit("a:b")
    with pytest.raises(RuntimeError, match="async with registry"):
        await hooks.settled()


async def test_observers_of_an_inner_scope_are_served_by_the_outer_one() -> None:
    told = []
    async with HookRegistry() as outer:
        inner = HookRegistry(parent=outer)
        outer.watch("a:b", lambda name, context: told.append("outer"))
        inner.watch("a:b", lambda name, context: told.append("inner"))
        inner.emit("a:b")
        await inner.settled()
        assert sorted(told) == ["inner", "outer"]
        outer.emit("a:b")
        await outer.settled()
        assert sorted(told) == ["inner", "outer", "outer"]


async def test_an_observer_that_left_is_told_of_nothing_more_and_leaves_no_task() -> None:
    told = []
    async with HookRegistry() as hooks:
        before = asyncio.all_tasks()
        remove = hooks.watch("a:b", lambda name, context: told.append(context["n"]))
        hooks.emit("a:b", n=1)
        await hooks.settled()
        hooks.emit("a:b", n=2)
        remove()
        remove()
        hooks.emit("a:b", n=3)
        await hooks.settled()
        await until(lambda: asyncio.all_tasks() == before)
    assert told == [1]


async def test_an_observer_may_remove_itself() -> None:
    told = []
    async with HookRegistry() as hooks:

        def once(name, context) -> None:
            told.append(context["n"])
            remove()

        remove = hooks.watch("a:b", once)
        hooks.emit("a:b", n=1)
        hooks.emit("a:b", n=2)
        await hooks.settled()
    assert told == [1]


async def test_filters_are_asked_of_what_was_told() -> None:
    told = []
    async with HookRegistry() as hooks:
        hooks.watch("a:b", lambda name, context: told.append(context["platform"]), when={"platform": "slack"})
        hooks.on("a:b", lambda event: {"platform": "slack"}, when={"platform": "web"})
        hooks.emit("a:b", platform="slack")
        hooks.emit("a:b", platform="telegram")
        await hooks.run("a:b", platform="web")
        await hooks.settled()
    assert told == ["slack", "slack"]


async def test_an_observer_has_nothing_of_the_context_of_who_told() -> None:
    told, secret = [], ContextVar("secret", default="none")
    async with HookRegistry() as hooks:
        hooks.watch("a:b", lambda name, context: told.append(secret.get()))
        secret.set("of one conversation")
        hooks.emit("a:b")
        await hooks.settled()
    assert told == ["none"]


@pytest.mark.row("EDG-18")
async def test_any_thread_may_tell_and_register() -> None:
    told = []

    async with HookRegistry() as hooks:
        hooks.watch("a:*", lambda name, context: told.append(threading.current_thread() is threading.main_thread()))

        def work(number: int) -> None:
            for n in range(20):
                hooks.watch(f"x:{number}:{n}", lambda name, context: None)
                hooks.emit(f"a:{n}")

        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(anyio.to_thread.run_sync, work, number)
        await until(lambda: len(told) == 80)
        assert len(hooks.hooks) == 81
    assert all(told), "observers are called on the loop"


async def test_a_quiet_program_logs_nothing(caplog) -> None:
    with caplog.at_level(logging.DEBUG, "gateway.hooks"):
        async with HookRegistry() as hooks:
            hooks.watch("a:b", lambda name, context: None)
            hooks.emit("a:b")
    assert [record for record in caplog.records if record.name.startswith("gateway")] == []
