"""An event that is run by who cannot await: without a loop, or in a plain function below a running one.

The chain of interceptors is the same coroutine as elsewhere; here it is driven by hand, and what it cannot do is wait.
A hook that would have to is refused, and with it the whole run: half a chain is no answer that a caller could go by.
"""

from asyncio import AbstractEventLoop, get_running_loop
from math import inf
from threading import local
from typing import Any

from gateway.events import Event
from gateway.hooks.chain import dispatch
from gateway.hooks.deadlines import Deadlines
from gateway.hooks.subscriptions import EventPlan


class _ThreadChains(local):
    """The chains of this thread, where no loop has them: an event that a hook fires there knows its cause by them."""

    def __init__(self) -> None:
        self.deadlines = Deadlines.without_loop()


_chains = _ThreadChains()


def dispatch_sync(plan: EventPlan, name: str, fields: dict[str, Any], deadlines: Deadlines) -> Event:
    """Let every interceptor see, change and decide the event, now. Raises RuntimeError when one of them waits."""
    loop = _find_loop()
    if loop is None or deadlines.loop not in (None, loop):
        deadlines = _chains.deadlines
    # A time limit needs a loop, and nothing that it could end is let through.
    running = dispatch(plan.without_timeouts(), name, fields, None, deadlines, inf)
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
