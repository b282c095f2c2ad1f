"""The return value of `on`, `watch` and `add`: it knows its hooks, removes them, and can replace another."""

import asyncio

from gateway.hooks import HookRegistry, Subscription
from gateway.hooks.mailbox import CAPACITY


async def test_a_subscription_knows_its_hooks_and_removes_them_by_name_or_by_a_call() -> None:
    hooks = HookRegistry()
    seen: list[str] = []
    one = hooks.on("a:b", lambda event: seen.append("one"), key="one")
    two = hooks.on("a:b", lambda event: seen.append("two"), key="two")
    assert isinstance(one, Subscription)
    assert [hook.key for hook in one.hooks] == ["one"]
    assert hooks.hooks == (*one.hooks, *two.hooks)
    one.remove()
    await hooks.run("a:b")
    two()
    two()
    await hooks.run("a:b")
    assert seen == ["two"]


def test_several_subscriptions_are_joined_to_one() -> None:
    hooks = HookRegistry()
    joined = Subscription.join([hooks.on("a:b", print), hooks.watch("a:b", print)])
    assert joined.hooks == hooks.hooks
    joined.remove()
    assert hooks.hooks == ()
    assert Subscription.join([]).hooks == ()


async def test_what_waits_goes_in_its_order_to_the_one_that_replaces_it() -> None:
    told: list[tuple[str, int]] = []
    async with HookRegistry() as hooks:
        old = hooks.watch("a:b", lambda name, event: told.append(("old", event["n"])))
        hooks.emit("a:b", n=1)
        hooks.emit("a:b", n=2)
        new = hooks.watch("a:b", lambda name, event: told.append(("new", event["n"])))
        new.replace(old)
        hooks.emit("a:b", n=3)
        await hooks.settled()
    assert told == [("new", 1), ("new", 2), ("new", 3)]
    assert old.hooks[0].dropped == 0


async def test_among_hooks_of_one_order_it_stands_where_the_other_stood() -> None:
    hooks = HookRegistry()
    seen: list[str] = []
    old = hooks.on("a:b", lambda event: seen.append("old"))
    hooks.on("a:b", lambda event: seen.append("second"))
    hooks.on("a:b", lambda event: seen.append("new")).replace(old)
    await hooks.run("a:b")
    assert seen == ["new", "second"]


async def test_what_waits_for_a_removed_observer_is_counted_as_dropped() -> None:
    release = asyncio.Event()

    async def wait(name: str, event: object) -> None:
        await release.wait()

    async with HookRegistry() as hooks:
        slow = hooks.watch("a:b", wait)
        for _ in range(CAPACITY + 3):
            hooks.emit("a:b")
        slow.remove()
        release.set()
    assert slow.hooks[0].dropped == CAPACITY + 3
