"""How hooks come into the registry and leave it: functions, decorators, objects and modules."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.hooks import Deny, Event, HookRegistry, on


@pytest.fixture
def hooks() -> HookRegistry:
    return HookRegistry()


def keys(hooks: HookRegistry, name: str) -> list[str]:
    return [hook.key.rpartition(".")[2] for hook in hooks.at(name)]


@pytest.mark.row("STR-1")
@pytest.mark.row("EDG-16")
async def test_a_function_is_added_for_an_event_and_what_is_returned_removes_it(hooks: HookRegistry) -> None:
    seen: list[str] = []
    remove = hooks.on("a:b", lambda event: seen.append(event.name))
    leave = hooks.watch("a:b", print)
    await hooks.run("a:b")
    remove()
    leave()
    await hooks.run("a:b")
    assert seen == ["a:b"]
    assert hooks.hooks == ()


@pytest.mark.row("WEB-4")
async def test_as_decorators_they_leave_the_function_as_it_is(hooks: HookRegistry) -> None:
    @hooks.on("tool:before", order=5)
    @hooks.on("tool:after")
    async def guard(event: Event) -> Deny:
        return Deny("no")

    @hooks.watch("tool:*")
    def note(name: str, event: Event) -> None: ...

    assert isinstance((await hooks.run("tool:before", tool="x")).outcome, Deny)
    assert (await guard(Event("x", {}))).text == "no"
    assert note.__name__ == "note"
    assert keys(hooks, "tool:before") == ["guard#2", "note"]
    assert keys(hooks, "tool:after") == ["guard", "note"]


@pytest.mark.row("STR-3")
@pytest.mark.row("STR-4")
async def test_one_hook_may_be_for_several_events_and_each_counts_once(hooks: HookRegistry) -> None:
    seen: list[str] = []
    hooks.on(["a:b", "c:d", "a:b"], lambda event: seen.append(event.name))
    for name in ("a:b", "c:d", "e:f"):
        await hooks.run(name)
    assert seen == ["a:b", "c:d"]
    assert len(hooks.hooks) == 1


@pytest.mark.row("STR-4")
@pytest.mark.parametrize("names", ["", [], [""], [None], ["a:b", 3], [["a:b"]], 3, None])
@pytest.mark.parametrize("verb", ["on", "watch"])
def test_what_is_no_name_is_refused(hooks: HookRegistry, verb: str, names: Any) -> None:
    with pytest.raises(ValueError, match="needs the name of an event"):
        getattr(hooks, verb)(names, print)
    assert hooks.hooks == ()


@pytest.mark.row("EDG-11")
async def test_the_order_is_0_unless_given_and_what_is_given_here_rules(hooks: HookRegistry) -> None:
    class Late:
        @on("a:b", order=9)
        def late(self, event: Event) -> None: ...

    def plain(event: Event) -> None: ...
    def first(event: Event) -> None: ...

    late = Late().late
    hooks.on("a:b", plain)
    hooks.on("a:b", first, order=-1)
    hooks.on("a:b", late, order=-2)
    assert keys(hooks, "a:b") == ["late", "first", "plain"]


@pytest.mark.parametrize(
    ("option", "what"), [("priority", "say order=, where the low go first"), ("prio", "unknown option 'prio'")]
)
@pytest.mark.parametrize("verb", ["on", "watch"])
def test_an_option_that_is_none_is_refused_and_priority_with_a_hint(
    hooks: HookRegistry, verb: str, option: str, what: str
) -> None:
    with pytest.raises(TypeError, match=what):
        getattr(hooks, verb)("a:b", print, **{option: 1})


class Rules:
    def __init__(self, allowed: str) -> None:
        self.allowed = allowed

    @on("tool:before")
    async def before(self, event: Event) -> Deny | None:
        return None if event["tool"] == self.allowed else Deny("not that")

    @on("tool:after", "llm:after", order=3, when={"tool": "shell"})
    def after(self, event: Event) -> dict[str, Any]:
        return {"error": None}

    def neither(self) -> None:
        raise AssertionError


@pytest.mark.row("STR-5")
@pytest.mark.row("SHE-40")
@pytest.mark.row("STR-65")
async def test_an_object_brings_all_its_marked_methods_and_takes_them_away(hooks: HookRegistry) -> None:
    remove = hooks.add(Rules("shell"))
    assert (keys(hooks, "tool:before"), keys(hooks, "llm:after")) == (["before"], ["after"])
    assert isinstance((await hooks.run("tool:before", tool="web")).outcome, Deny)
    assert (await hooks.run("tool:before", tool="shell")).outcome is None
    assert (await hooks.run("tool:after", tool="shell", error="x"))["error"] is None
    assert (await hooks.run("tool:after", tool="web", error="x"))["error"] == "x"
    remove()
    assert hooks.hooks == ()


@pytest.mark.row("EDG-65")
@pytest.mark.row("WEB-56")
async def test_bundles_stand_side_by_side_and_one_can_be_taken_away_alone(hooks: HookRegistry) -> None:
    shell, web = Rules("shell"), Rules("web")
    hooks.add(shell)
    remove = hooks.add(web)
    assert isinstance((await hooks.run("tool:before", tool="shell")).outcome, Deny)
    remove()
    assert (await hooks.run("tool:before", tool="shell")).outcome is None


def test_what_has_nothing_marked_is_refused(hooks: HookRegistry) -> None:
    with pytest.raises(ValueError, match="has nothing that is marked with @on"):
        hooks.add(SimpleNamespace(a=1))


@pytest.mark.row("STR-16")
async def test_one_can_ask_whether_anybody_listens_and_who_in_firing_order(hooks: HookRegistry) -> None:
    inner = HookRegistry(parent=hooks)
    assert not inner.wants("a:b")
    assert inner.at("a:b") == []
    for said, order in (("second", 2), ("first", 1)):
        inner.on("a:*", lambda event: None, order=order, key=said)
    remove = inner.watch("*", print, key="observer")
    hooks.on("a:b", lambda event: None, order=9, key="outer")
    assert [hook.key for hook in inner.at("a:b")] == ["outer", "first", "second", "observer"]
    assert [hook.key for hook in inner.at("x:y")] == ["observer"]
    assert (inner.wants("x:y"), hooks.wants("x:y")) == (True, False)
    remove()
    assert not inner.wants("x:y")


@pytest.mark.row("SHE-47")
async def test_a_hook_that_comes_after_the_first_event_is_told_of_the_next(hooks: HookRegistry) -> None:
    assert (await hooks.run("a:b", n=1))["n"] == 1
    hooks.on("a:b", lambda event: {"n": 2})
    assert (await hooks.run("a:b", n=1))["n"] == 2
    hooks.clear()
    assert (await hooks.run("a:b", n=1))["n"] == 1


def test_the_core_is_a_library_that_loads_nothing_of_the_daemon() -> None:
    code = """
import asyncio, sys
from gateway.hooks import Deny, End, Event, HookRegistry, Retry, on
hooks = HookRegistry()
hooks.on("my:event", lambda event: {"n": event["n"] + 1})
assert asyncio.run(hooks.run("my:event", n=1))["n"] == 2
heavy = {"gateway.daemon", "gateway.config", "gateway.engine", "gateway.agent", "yaml", "msgspec", "aiohttp"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
