"""Hooks that decide about an event together run side by side; their answers count in their order."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from gateway.events import Event
from gateway.hooks import Deny, HookRegistry
from gateway.hooks.decisions import AskHook, Decisions
from gateway.hooks.patterns import EventSelector
from gateway.hooks.wires.wire import HookFailed

SECONDS = 2.0
EVENTS = ("command:*", "tool:before")


class Deciders:
    """A registry whose hooks decide together."""

    def __init__(self, registry: HookRegistry, decisions: Decisions) -> None:
        self.registry, self.decisions = registry, decisions

    def add(self, name: str, ask: AskHook, failed: Callable[[HookFailed], object] = print, **options: Any) -> None:
        async def decide(event: Event) -> Any:
            try:
                return await self.decisions.ask(name, event, SECONDS, can_change=event.name == "tool:before")
            except HookFailed as error:
                failed(error)
                raise

        self.decisions.join(name, ask, EventSelector(EVENTS))
        self.registry.on(EVENTS, decide, key=name, **options)


@asynccontextmanager
async def deciders() -> AsyncIterator[Deciders]:
    async with HookRegistry() as registry, anyio.create_task_group() as tasks:
        yield Deciders(registry, Decisions(registry, tasks))
        tasks.cancel_scope.cancel()


def say(word: str, **fields: Any) -> AskHook:
    async def ask(event: Event) -> Any:
        return {"decision": word, **fields}

    return ask


async def test_each_has_all_the_time_and_the_first_in_order_counts() -> None:
    begun: list[str] = []
    both = anyio.Event()

    def wait_for_the_other(name: str) -> AskHook:
        async def ask(event: Event) -> Any:
            begun.append(name)
            if len(begun) == 2:
                both.set()
            await both.wait()
            return {"decision": "handled", "message": name}

        return ask

    async with deciders() as house:
        house.add("b", wait_for_the_other("b"), order=2)
        house.add("a", wait_for_the_other("a"), order=1)
        event = await house.registry.run("command:title", result=None)
        assert (event["result"], sorted(begun)) == ("a", ["a", "b"])


async def test_a_refusal_counts_whoever_has_decided_before() -> None:
    async with deciders() as house:
        house.add("a", say("handled", message="done"))
        house.add("b", say("rewrite", command_name="other"))
        house.add("c", say("deny", message="no"))
        event = await house.registry.run("command:title", result=None, command="title")
        assert isinstance(event.outcome, Deny)
        assert (event["result"], event["command"]) == ("done", "title")


async def test_what_none_of_them_has_in_time_is_a_failure_of_its_own() -> None:
    failures: list[HookFailed] = []

    async def never(_event: Event) -> None:
        await anyio.sleep_forever()

    async with deciders() as house:
        house.add("slow", never, failures.append)
        house.add("quick", say("deny", message="no"))
        event = await house.registry.run("command:title")
        assert isinstance(event.outcome, Deny)
        assert [(str(one), one.kind) for one in failures] == [("it did not decide within 2 s", "timeout")]


async def test_they_are_told_apart_and_what_one_changes_the_other_does_not_see() -> None:
    seen: list[Any] = []

    async def change(event: Event) -> None:
        event["args"] = "changed"
        event.own["mine"] = event.hook
        seen.append((dict(event.own), event.hook))

    async with deciders() as house:
        house.add("a", change)
        house.add("b", change)
        house.add("elsewhere", change, when={"platform": "slack"})
        event = await house.registry.run("command:title", args="as typed", platform="terminal")
        assert event["args"] == "as typed"
        assert seen == [({"mine": "a"}, "a"), ({"mine": "b"}, "b")]


async def test_an_event_that_happens_again_is_decided_again() -> None:
    async with deciders() as house:
        house.add("a", say("handled", message="done"))
        for _ in range(2):
            assert (await house.registry.run("command:title", id="same", result=None))["result"] == "done"


async def test_what_it_causes_comes_of_this_event() -> None:
    causes: list[Any] = []

    async def look(event: Event) -> None:
        causes.append((house.registry.current_cause or ("", 0))[0] == event["id"])

    async with deciders() as house:
        house.add("a", look)
        await house.registry.run("command:title")
        assert causes == [True]


@pytest.mark.parametrize("error", [HookFailed("it broke", kind="raised"), RuntimeError("it broke")])
async def test_who_breaks_takes_nobody_along(error: Exception) -> None:
    async def fail(_event: Event) -> None:
        raise error

    async with deciders() as house:
        house.add("a", fail)
        house.add("b", say("deny", message="no"))
        assert isinstance((await house.registry.run("command:title")).outcome, Deny)


async def test_who_stands_behind_a_change_decides_about_what_is_left_and_is_soon_asked_once() -> None:
    asked: list[tuple[str, Any]] = []

    def note(name: str, left: Any = None) -> AskHook:
        async def ask(event: Event) -> Any:
            asked.append((name, event["args"]))
            if left is not None:
                event["args"] = left
            return {"decision": "deny", "message": name} if event["args"] == "bad" else None

        return ask

    async with deciders() as house:
        for name, left in (("a", None), ("b", "good"), ("c", None), ("d", None)):
            house.add(name, note(name, left))
        for number, repeated in enumerate(([("c", "typed"), ("d", "typed")], [])):
            event = await house.registry.run("tool:before", tool="x", args="typed", id=str(number))
            assert event["args"] == "good"
            assert asked == [("a", "typed"), ("b", "typed"), *repeated, ("c", "good"), ("d", "good")]
            asked.clear()
        house.add("e", note("e", "bad"))
        house.add("f", note("f"))
        assert isinstance((await house.registry.run("tool:before", tool="x", args="typed", id="3")).outcome, Deny)
