"""The order of hooks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hooks import End, HookRegistry


def record(registry: HookRegistry, name: str | list[str], seen: list[str], said: str, **options) -> None:
    registry.on(name, lambda event: seen.append(said), **options)


async def order(registry: HookRegistry, name: str, seen: list[str]) -> list[str]:
    seen.clear()
    await registry.run(name)
    return list(seen)


@pytest.mark.row("SHE-5")
@pytest.mark.row("EDG-10")
@pytest.mark.row("WEB-7")
@pytest.mark.row("STR-8")
@pytest.mark.row("WEB-51")
async def test_low_order_goes_first_and_ties_keep_the_order_of_registration() -> None:
    hooks = HookRegistry()
    seen: list[str] = []
    for said, number in (("b", 0), ("d", 10), ("a", -100), ("c", 0), ("e", 90.5)):
        record(hooks, "x:before", seen, said, order=number)
    assert await order(hooks, "x:before", seen) == ["a", "b", "c", "d", "e"]


@pytest.mark.row("EDG-12")
@pytest.mark.row("STR-75")
async def test_rungs_are_numbers_input_policy_late_and_output_policy_early() -> None:
    hooks = HookRegistry()
    seen: list[str] = []
    for said, number in (("policy", 90), ("observer", 0), ("rails", -100)):
        record(hooks, "tool:before", seen, said, order=number)
    for said, number in (("observer", 0), ("policy", -90)):
        record(hooks, "tool:after", seen, said, order=number)
    assert await order(hooks, "tool:before", seen) == ["rails", "observer", "policy"]
    assert await order(hooks, "tool:after", seen) == ["policy", "observer"]


@pytest.mark.row("STR-7")
@pytest.mark.row("STR-9")
async def test_after_an_operation_what_is_tied_runs_in_reverse_and_order_still_rules() -> None:
    hooks = HookRegistry()
    seen: list[str] = []
    for said, number in (("first", 0), ("second", 0), ("late", 5), ("later", 5), ("early", -5)):
        record(hooks, ["tool:before", "tool:after"], seen, said, order=number)
    assert await order(hooks, "tool:before", seen) == ["early", "first", "second", "late", "later"]
    assert await order(hooks, "tool:after", seen) == ["early", "second", "first", "later", "late"]


@pytest.mark.row("SHE-5")
async def test_the_reverse_can_be_switched_off() -> None:
    hooks = HookRegistry(lifo=False)
    seen: list[str] = []
    record(hooks, "tool:after", seen, "first")
    record(hooks, "tool:after", seen, "second")
    assert await order(hooks, "tool:after", seen) == ["first", "second"]


async def test_who_named_the_event_goes_before_who_matched_it() -> None:
    hooks = HookRegistry()
    seen: list[str] = []
    for pattern in ("*", "tool:*", "tool:before", "*:before", "tool:bef*"):
        record(hooks, pattern, seen, pattern)
    assert await order(hooks, "tool:before", seen) == ["tool:before", "*", "tool:*", "*:before", "tool:bef*"]


async def test_who_named_the_event_goes_last_of_the_tied_after_it() -> None:
    hooks = HookRegistry()
    seen: list[str] = []
    for pattern in ("*", "tool:after", "tool:*"):
        record(hooks, pattern, seen, pattern)
    assert await order(hooks, "tool:after", seen) == ["tool:*", "*", "tool:after"]


@pytest.mark.row("EDG-13")
@pytest.mark.row("EDG-14")
async def test_the_outer_scope_goes_first_whatever_the_number() -> None:
    gateway = HookRegistry()
    agent = HookRegistry(parent=gateway)
    conversation = HookRegistry(parent=agent)
    seen: list[str] = []
    record(conversation, "x:before", seen, "conversation", order=-100)
    record(agent, "x:before", seen, "agent")
    record(gateway, "x:before", seen, "gateway", order=100)
    assert await order(conversation, "x:before", seen) == ["gateway", "agent", "conversation"]
    assert await order(agent, "x:before", seen) == ["gateway", "agent"]
    assert await order(gateway, "x:before", seen) == ["gateway"]


@pytest.mark.row("EDG-7")
async def test_an_end_in_the_outer_scope_stops_the_inner_ones_too() -> None:
    outer = HookRegistry()
    seen: list[str] = []
    inner = HookRegistry(parent=outer)
    outer.on("x:y", lambda event: End("bye"))
    record(inner, "x:y", seen, "inner")
    event = await inner.run("x:y")
    assert isinstance(event.outcome, End)
    assert seen == []


async def test_what_an_outer_scope_gains_and_loses_reaches_the_inner_ones() -> None:
    outer = HookRegistry()
    inner = HookRegistry(parent=outer)
    seen: list[str] = []
    record(inner, "x:y", seen, "inner")
    assert await order(inner, "x:y", seen) == ["inner"]
    remove = outer.on("x:*", lambda event: seen.append("outer"))
    assert await order(inner, "x:y", seen) == ["outer", "inner"]
    remove()
    assert await order(inner, "x:y", seen) == ["inner"]


@pytest.mark.parametrize("pattern", [["a:b", "*", "a:*"], ["a:b", "a:b"], ["*", "a:b*", "*:b"]])
async def test_a_hook_is_told_once_however_many_of_its_patterns_match(pattern) -> None:
    hooks = HookRegistry()
    seen: list[str] = []
    record(hooks, pattern, seen, "once")
    assert await order(hooks, "a:b", seen) == ["once"]


@pytest.mark.row("EDG-15")
async def test_a_function_that_is_registered_twice_is_called_twice() -> None:
    hooks = HookRegistry()
    seen: list[str] = []

    def hook(event) -> None:
        seen.append(event.name)

    hooks.on("a:b", hook)
    hooks.on("a:b", hook)
    assert await order(hooks, "a:b", seen) == ["a:b", "a:b"]
    assert len(hooks.hooks) == 2


registrations = st.tuples(
    st.sampled_from(["x:after", "x:before", "x:*", "*", "*:after"]), st.integers(-2, 2), st.booleans()
)


@given(st.lists(registrations, max_size=10), st.sampled_from(["x:before", "x:after"]), st.booleans())
async def test_the_order_is_what_a_plain_sort_would_say(given_hooks, name, lifo) -> None:
    outer = HookRegistry(lifo=lifo)
    inner = HookRegistry(parent=outer, lifo=lifo)
    expected, counts = [], [0, 0]
    for number, (pattern, rung, is_inner) in enumerate(given_hooks):
        (inner if is_inner else outer).on(pattern, lambda event: None, order=rung, key=str(number))
        counts[is_inner] += 1
        if pattern in (name, "x:*", "*") or (pattern == "*:after" and name == "x:after"):
            sign = -1 if lifo and name == "x:after" else 1
            expected.append((is_inner, rung, sign * (pattern != name), sign * number, str(number)))
    assert [hook.key for hook in inner.at(name)] == [key for *_, key in sorted(expected)]
