"""One event, told: to its interceptors, one after the other, then to its observers. State lives elsewhere."""

from asyncio import current_task
from time import time
from typing import Any

from gateway.errors import HookError
from gateway.events import Bags, Event
from gateway.hooks.cause import CAUSE, MAX_DEPTH, stamp_event
from gateway.hooks.deadlines import Deadlines
from gateway.hooks.mailbox import enqueue_event
from gateway.hooks.outcomes import OutcomeCollector
from gateway.hooks.subscriptions import EventPlan


class InterceptedEvent(Event):
    """An event on its way. A constructor in Python would cost more than a handler's call, so `dispatch` fills it."""

    __slots__ = ()
    __init__ = dict.__init__


async def notify_observers(
    plan: EventPlan, name: str, fields: dict[str, Any], bags: Bags | None, course: Deadlines
) -> Event:
    """An event that nobody intercepts."""
    if plan.boxes:
        enqueue_event(plan.boxes_for(name, fields), (name, fields, time(), course.cause(), bags, None))
    return Event(name, fields, None, bags)


def refuse_event(plan: EventPlan, event: Event) -> Event:
    """An event that came of too many others: nobody is told, and those who guard something deny."""
    verdict = OutcomeCollector(event, plan.honoured)
    verdict.fail(plan.steps, HookError(f"it came of {MAX_DEPTH} events, each caused by a hook"))
    verdict.conclude()
    return event


async def dispatch(  # noqa: C901, PLR0915 - the hot path: one function more would cost as much as a handler's call
    plan: EventPlan, name: str, fields: dict[str, Any], bags: Bags | None, course: Deadlines, limit: float
) -> Event:
    """Let every interceptor see, change and decide the event; then tell the observers, also when this raises."""
    task = current_task(course.loop)
    outer = course.chains.get(task)
    cause = CAUSE.get() if outer is None else (outer[1]["id"], outer[3])
    stamp_event(fields, cause)
    if cause and cause[1] >= MAX_DEPTH:
        return refuse_event(plan, Event(name, fields, plan.writable, bags))
    event: Event = InterceptedEvent(fields)
    event.name, event.writable, event.kept = name, plan.writable, bags
    event.hook = event.outcome = event.gateway = event.asked = None
    chain = course.chains[task] = (outer, event, limit, cause[1] + 1 if cause else 0)
    if not course.is_watched:
        course.watch(limit)
    plan.runs += 1
    plan.fired = fields["time"]
    steps = iter(plan.steps if plan.runs < plan.due else plan.timed())
    verdict: OutcomeCollector | None = None
    try:
        for hook, call, is_async in steps:
            if plan.is_filtered and not hook.applies(name, event):
                hook.health.uncount_call()
                continue
            event.hook = hook.owner
            try:
                if is_async:
                    answer = await call(event)
                elif hasattr(answer := call(event), "__await__"):
                    answer = await answer
            except BaseException as error:  # noqa: BLE001 - the hook's own, or passed on by the verdict
                verdict = verdict or OutcomeCollector(event, plan.honoured)
                if verdict.raised(hook, error, course.deadline(event), steps):
                    break
            else:
                if answer is not None:
                    verdict = verdict or OutcomeCollector(event, plan.honoured)
                    if verdict.take(hook, answer):
                        break
        if verdict is not None:
            verdict.conclude()
    finally:
        course.leave(chain, task)
        for hook, _, _ in steps:
            hook.health.uncount_call()
        if plan.boxes:
            enqueue_event(plan.boxes_for(name, event), (name, dict(event), event["time"], cause, bags, event.outcome))
    return event
