"""The run of an event for a caller that cannot await: without a loop, or in a plain function below a running loop.

The chain of interceptors is the same coroutine as elsewhere; here this module drives the coroutine, which cannot wait.
If a hook has to wait, the whole run fails, because the answers of some of the hooks are not a reliable decision.

Without a loop, a hook's awaitable gets a loop of its own for its first step. Otherwise `asyncio.sleep` would raise
inside the hook for want of a loop, which would count as the hook's failure: a guard would be skipped instead of
refused.
"""

import asyncio
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Awaitable
from contextvars import copy_context
from math import inf
from threading import local
from typing import Any

from gateway.events import Event
from gateway.hooks.cause import CAUSE
from gateway.hooks.chain import dispatch
from gateway.hooks.deadlines import Deadlines
from gateway.hooks.hook import Handler, Hook
from gateway.hooks.subscriptions import EventPlan


class _ThreadChains(local):
    """The chains of a thread without a loop, so that an event that a hook fires there knows its cause."""

    def __init__(self) -> None:
        self.deadlines = Deadlines.without_loop()


_chains = _ThreadChains()


def dispatch_sync(plan: EventPlan, name: str, fields: dict[str, Any], deadlines: Deadlines) -> Event:
    """Call the interceptors, which see, change and decide the event. Raises RuntimeError if an interceptor waits."""
    loop = _find_loop()
    if loop is None or deadlines.loop not in (None, loop):
        deadlines = _chains.deadlines
    # A time limit needs a running loop, and a call that it could end is refused anyway.
    plan = plan.with_calls(_call_without_loop if loop is None else _call_as_registered)
    running = dispatch(plan, name, fields, None, deadlines, inf)
    try:
        running.send(None)
    except StopIteration as done:
        event: Event = done.value
        return event
    waits = deadlines.find_innermost().hook
    running.close()
    raise RuntimeError(f"{waits} has to wait at {name}, and run_sync cannot: use `await registry.run({name!r}, ...)`")


def _find_loop() -> AbstractEventLoop | None:
    try:
        return get_running_loop()
    except RuntimeError:
        return None


def _call_as_registered(hook: Hook) -> Handler:
    return hook.fn


def _call_without_loop(hook: Hook) -> Handler:
    """Wrap a hook's function: an awaitable that the function returns has a loop of its own for one step."""

    async def call(event: Event) -> Any:
        answer = hook.fn(event)
        if not hasattr(answer, "__await__"):
            return answer
        is_done, answer = _step(answer)
        if not is_done:
            await asyncio.sleep(0)  # waits, as the hook did: the chain ends here
        return answer

    return call


def _step(awaitable: Awaitable[Any]) -> tuple[bool, Any]:
    """Take the first step of an awaitable. Return True and the answer if that step finished all work.

    Raises the error of the awaitable. Unfinished work is cancelled.
    """
    context = copy_context()
    context.run(CAUSE.set, _chains.deadlines.cause())  # the loop could not know it by its task
    loop = asyncio.new_event_loop()
    try:
        task = loop.create_task(_await(awaitable), context=context)
        loop.call_soon(loop.stop)
        loop.run_forever()
        if not (left := asyncio.all_tasks(loop)):
            return True, task.result()
        for one in left:
            one.cancel()
        loop.run_until_complete(asyncio.wait(left))
        return False, None
    finally:
        loop.close()


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
