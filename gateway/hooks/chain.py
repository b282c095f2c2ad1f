"""One event, told: to its interceptors, one after the other, then to its observers. State lives elsewhere."""

from asyncio import CancelledError
from collections.abc import Iterator
from time import perf_counter
from types import CoroutineType
from typing import Any

from gateway.errors import HookError
from gateway.events import Bags, Event
from gateway.hooks.cause import CAUSE, MAX_DEPTH, stamp
from gateway.hooks.deadline import Deadline, Deadlines
from gateway.hooks.hook import Hook
from gateway.hooks.mailbox import tell
from gateway.hooks.plans import Plan
from gateway.hooks.verdict import Verdict, fail_all, raised


async def dispatch(
    plan: Plan, name: str, fields: dict[str, Any], bags: Bags | None, deadlines: Deadlines, limit: float
) -> Event:
    """Let every interceptor see, change and decide the event; then tell the observers what became of it.

    Raises Pause when answers are missing, and what a hook with `on_error="raise"` raised; observers are told even so.
    """
    if not plan.interceptors:
        if plan.boxes:
            tell(plan.boxes_for(name, fields), name, fields, bags)
        return Event(name, fields, None, bags)
    cause = CAUSE.get()
    depth = cause[1] + 1 if cause else 0
    stamp(fields, cause)
    event = Event(name, fields, plan.writable, bags)
    verdict = Verdict(event, plan.honoured)
    token = CAUSE.set((fields["id"], depth))
    deadline = deadlines.arm(limit)
    hooks = iter(plan.interceptors)
    try:
        if depth > MAX_DEPTH:
            fail_all(hooks, event, verdict, HookError(f"it came of {MAX_DEPTH} events, each caused by a hook"))
        await _ask(hooks, plan.is_filtered, event, verdict, deadline)
        verdict.conclude()
    finally:
        deadlines.disarm(deadline)
        CAUSE.reset(token)
        if plan.boxes:
            tell(plan.boxes_for(name, event), name, dict(event), bags, event.outcome)
    return event


async def _ask(hooks: Iterator[Hook], is_filtered: bool, event: Event, verdict: Verdict, deadline: Deadline) -> None:
    """The hot path: a handler that has nothing to say costs little more than its own call."""
    fired: float = event["time"]
    hook = None
    try:
        for hook in hooks:
            if is_filtered and not hook.applies(event.name, event):
                continue
            event.hook = hook.owner
            health = hook.health
            health.fired = fired
            health.credit -= 1
            began = perf_counter() if health.credit < 0 else 0.0
            try:
                answer = hook.call(event)
                if answer is not None and (type(answer) is CoroutineType or hasattr(answer, "__await__")):
                    answer = await answer
            except BaseException as error:  # noqa: BLE001 - the hook's own, or passed on by `raised`
                answer = raised(hook, event, error, deadline)
            if began:
                health.timed(perf_counter() - began)
            if answer is not None and verdict.take(hook, answer):
                break
    except CancelledError:
        if hook is None or not deadline.is_behind:
            raise
        late = TimeoutError(f"the interceptors of {event.name} took longer than {deadline.limit:g} s")
        fail_all((hook, *hooks), event, verdict, late)
