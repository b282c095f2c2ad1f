"""A person who watches events on one node sees those of the others."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from gateway.cluster.event_relay import SharedEventRelay
from gateway.daemon.nodes import EventRelay, ForwardedEvent
from gateway.engine.interface import Engine
from gateway.hooks import HookRegistry
from tests.outbox.conftest import engine
from tests.spine import until

__all__ = ["engine"]


@asynccontextmanager
async def serving(engine: Engine, node: str) -> AsyncIterator[tuple[EventRelay, HookRegistry]]:
    registry = HookRegistry()
    relay = SharedEventRelay(engine, registry, f"run of {node}", node)
    async with registry, anyio.create_task_group() as tasks:
        await tasks.start(relay.run)
        yield relay, registry
        tasks.cancel_scope.cancel()


async def test_events_of_other_nodes_come_to_whoever_watches_and_to_nobody_else(engine: Engine) -> None:
    async with serving(engine, "here") as (here, ours), serving(engine, "there") as (_, theirs):
        found = list[ForwardedEvent]()
        with here.watching(["hook:*"], found.append):
            await until(lambda: theirs.wants("hook:loaded"), "the wish")
            assert not theirs.wants("agent:start"), "nobody watches that"
            assert not ours.wants("hook:loaded"), "our own do not come by this"
            theirs.emit("hook:loaded", hook="a", handler=print)
            await until(lambda: bool(found), "the event")
        (event,) = found
        assert (event.node, event.event, event.fields["hook"]) == ("there", "hook:loaded", "a")
        theirs.emit("hook:loaded", hook="b")
        await theirs.settled()
        with here.watching(["hook:*"], found.append), here.watching(["hook:*"], found.append):
            theirs.emit("hook:loaded", hook="c")
            await until(lambda: len(found) >= 3, "it, for both")
        assert [one.fields["hook"] for one in found] == ["a", "c", "c"], "of b nobody heard, who did not watch"


async def test_a_run_that_goes_on_is_known_to_the_others(engine: Engine) -> None:
    async with serving(engine, "here") as (here, _):
        async with serving(engine, "there"):
            assert await here.is_running("run of there")
        assert not await here.is_running("run of there")
    assert not await EventRelay().is_running("run of there"), "alone there is no other one"
