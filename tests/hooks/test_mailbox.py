"""An observer's mailbox: bounded, in order, served until the end and not beyond."""

import asyncio

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.hooks import HookRegistry
from gateway.hooks.mailbox import CAPACITY, Observer
from tests.spine import until


async def test_the_order_is_kept_for_each_observer_sync_and_async() -> None:
    told: dict[str, list[int]] = {"sync": [], "async": []}

    async def sleepy(name, context) -> None:
        await asyncio.sleep(0.001 if context["n"] % 3 else 0)
        told["async"].append(context["n"])

    async with HookRegistry() as hooks:
        hooks.watch("a:*", sleepy)
        hooks.watch("a:*", lambda name, context: told["sync"].append(context["n"]))
        for n in range(50):
            hooks.emit(f"a:{n}", n=n)
        await hooks.settled()
    assert told == {"sync": list(range(50)), "async": list(range(50))}


async def test_in_parallel_as_many_run_at_a_time_as_were_asked_for() -> None:
    running, most, calls = 0, 0, 0

    async def work(name, context) -> None:
        nonlocal running, most, calls
        calls += 1
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1

    hooks = HookRegistry()
    hooks.watch("a:b", work, mode="parallel", max=3)
    for _ in range(4):
        hooks.emit("a:b")
    async with hooks:
        for _ in range(4):
            hooks.emit("a:b")
        await hooks.settled()
    assert most == 3
    assert calls == 8


@given(st.lists(st.integers(0, 2), max_size=30), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
async def test_every_event_is_delivered_once_whoever_runs(pauses, most) -> None:
    told = []

    async def work(name, context) -> None:
        for _ in range(context["pause"]):
            await asyncio.sleep(0)
        told.append(context["n"])

    async with HookRegistry() as hooks:
        hooks.watch("a:b", work, mode="parallel", max=most)
        for n, pause in enumerate(pauses):
            hooks.emit("a:b", n=n, pause=pause)
            if pause == 1:
                await asyncio.sleep(0)
    assert sorted(told) == list(range(len(pauses)))


async def test_no_task_is_made_for_an_event() -> None:
    async with HookRegistry() as hooks:
        hooks.watch("a:b", lambda name, context: None)
        hooks.emit("a:b")
        await hooks.settled()
        before = asyncio.all_tasks()
        for _ in range(100):
            hooks.emit("a:b")
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == before


async def test_an_observer_over_its_time_is_cancelled(caplog) -> None:
    told = []

    async def slow(name, context) -> None:
        told.append(context["n"])
        await asyncio.sleep(60 if context["n"] == 0 else 0)

    async with HookRegistry() as hooks:
        hooks.watch("a:b", slow, timeout=0.01, key="slow")
        hooks.emit("a:b", n=0)
        hooks.emit("a:b", n=1)
        await hooks.settled()
    assert told == [0, 1]
    assert "slow failed at a:b: TimeoutError: it took longer than 0.01 s" in caplog.text


async def test_a_full_mailbox_loses_the_oldest_counts_them_and_warns_once_an_episode(caplog) -> None:
    told, release = [], asyncio.Event()

    async def slow(name, context) -> None:
        await release.wait()
        told.append(context["n"])

    async with HookRegistry() as hooks:
        hooks.watch("a:b", slow, key="slow")
        hook = hooks.hooks[0]
        for episode in (1, 2):
            release.clear()
            hooks.emit("a:b", n=-1)
            await until(lambda: hook.queued == 0)
            for n in range(CAPACITY + 5):
                hooks.emit("a:b", n=n)
            assert (hook.queued, hook.dropped) == (CAPACITY, 5 * episode)
            release.set()
            await hooks.settled()
            assert told == [-1, *range(5, CAPACITY + 5)]
            told.clear()
    warnings = [record.getMessage() for record in caplog.records]
    assert warnings == [f"slow does not keep up: {CAPACITY} events wait, the oldest are dropped"] * 2


async def test_what_is_still_there_at_the_end_is_delivered() -> None:
    told = []

    async def slow(name, context) -> None:
        await asyncio.sleep(0.001)
        told.append(context["n"])

    async with HookRegistry() as hooks:
        hooks.watch("a:b", slow)
        for n in range(5):
            hooks.emit("a:b", n=n)
    assert told == [0, 1, 2, 3, 4]


async def test_an_observer_that_hangs_at_the_end_has_its_time_and_no_more(caplog) -> None:
    async with HookRegistry(grace=0.02) as hooks:
        hooks.watch("a:b", lambda name, context: anyio.sleep_forever(), key="stuck")
        for _ in range(2):
            hooks.emit("a:b")
        await asyncio.sleep(0)
    assert "stuck was not told of the last 1 of its events: the time to stop was over" in caplog.text


async def test_an_error_within_the_block_leaves_it_as_it_came() -> None:
    async def fail() -> None:
        async with HookRegistry() as hooks:
            hooks.watch("a:b", lambda name, context: None)
            hooks.emit("a:b")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await fail()


async def test_a_cancellation_within_the_block_still_delivers_what_was_told() -> None:
    told = []
    with anyio.CancelScope() as scope:
        async with HookRegistry() as hooks:
            hooks.watch("a:b", lambda name, context: told.append(name))
            hooks.emit("a:b")
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert told == ["a:b"]


async def test_a_burst_for_a_busy_observer_lets_the_loop_turn() -> None:
    turns = 0

    def busy(name, context) -> None:
        deadline = asyncio.get_running_loop().time() + 0.002
        while asyncio.get_running_loop().time() < deadline:
            pass

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with HookRegistry() as hooks:
        hooks.watch("a:b", busy)
        ticker = asyncio.create_task(tick())
        for _ in range(20):
            hooks.emit("a:b")
        await hooks.settled()
        ticker.cancel()
    assert turns > 5


@pytest.mark.parametrize("options", [{"mode": "fast"}, {"mode": "parallel", "max": 0}])
def test_a_mode_that_is_none_is_refused(options) -> None:
    with pytest.raises(ValueError, match="mode is queued, or parallel with a max of at least 1"):
        HookRegistry().watch("a:b", print, **options)


async def test_who_waits_for_a_conversation_waits_for_what_happened_in_it_and_no_longer() -> None:
    release = {name: asyncio.Event() for name in ("mine", "other", "later")}
    over: list[str] = []

    async def slow(name, context) -> None:
        await release[context["which"]].wait()

    async with HookRegistry() as hooks:
        hooks.watch("a:b", slow, mode="parallel", max=3)
        (observer,) = hooks.hooks
        assert isinstance(observer, Observer)
        hooks.emit("a:b", session_key="one", which="mine")
        hooks.emit("a:b", session_key="two", which="other")

        async def wait(session: str) -> None:
            await observer.mailbox.wait_until_told(session)
            over.append(session)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, "one")
            tasks.start_soon(wait, "two")
            await asyncio.sleep(0)
            hooks.emit("a:b", session_key="one", which="later")
            release["mine"].set()
            await until(lambda: over == ["one"])
            observer.mailbox.close()
            release["other"].set()
        assert over == ["one", "two"]
        release["later"].set()
