"""The dispatch of one event: to its interceptors one after the other, then to its observers.

A plan (`EventPlan`) lists the hooks of an event. The plan is built once for each name, so that an event costs a
dictionary look-up and the calls themselves. `dispatch` walks through the calls of a plan and holds four things:

- the event: one dict with the caller's fields, which all interceptors change in place. The event's
  `hook` is set before each call, and selects the bag that `event.own` returns.
- the chain: the event and the chain around it, while its interceptors run. `Deadlines` keeps each chain by its task: so
  an event that an interceptor fires knows its cause, and a timer finds a chain that takes too long. The timer cancels
  the task; `OutcomeCollector.raised` tells such a cancellation from a cancellation of the whole operation.
- the collector: created when the first hook answers or fails, since most hooks answer None. The collector combines the
  answers, and returns True if the chain ends.
- the cause: the event that caused this event, and the number of events before. At a depth of eight no hook is called.

In every case, including an error or a cancellation, the chain is removed and the observers see the final event. No
other state exists: two events at the same time, or an event within another, share nothing but the plan.
"""

from asyncio import current_task
from time import time
from typing import Any

from gateway.errors import HookError
from gateway.events import Bags, Event
from gateway.events.fields import SHORT_FORMS, SHORT_LENGTH
from gateway.hooks.cause import CAUSE, MAX_DEPTH, stamp_event
from gateway.hooks.deadlines import Deadlines
from gateway.hooks.outcome_collector import OutcomeCollector
from gateway.hooks.recorder import OwedEvents
from gateway.hooks.subscriptions import EventPlan


class InterceptedEvent(Event):
    """An event while its interceptors run.

    `dispatch` fills the event, because a constructor in Python would cost more than a hook's call.

    If a hook changes a text, for example to redact it, the text's short form changes too, for all later hooks.
    """

    __slots__ = ()
    __init__ = dict.__init__

    def __setitem__(self, field: str, value: Any) -> None:
        Event.__setitem__(self, field, value)
        self._shorten(field)

    def update(self, *others: Any, **fields: Any) -> None:
        changes = dict(*others, **fields)
        Event.update(self, changes)
        for field in changes:
            self._shorten(field)

    def _shorten(self, field: str) -> None:
        short = SHORT_FORMS.get(field)
        if short and short in self:
            dict.__setitem__(self, short, str(self[field])[:SHORT_LENGTH])


async def notify_observers(
    plan: EventPlan,
    name: str,
    fields: dict[str, Any],
    bags: Bags | None,
    deadlines: Deadlines,
    owed: OwedEvents | None = None,
) -> Event:
    """Pass an event without interceptors to its observers."""
    if plan.is_observed:
        plan.tell((name, fields, time(), deadlines.cause(), bags, None), owed)
    return Event(name, fields, None, bags)


def refuse_event(plan: EventPlan, event: Event, owed: OwedEvents | None) -> Event:
    """End an event at the depth limit: no hook is called, and guards deny."""
    collector = OutcomeCollector(event, plan.honoured, owed)
    collector.fail(plan.calls, HookError(f"it came of {MAX_DEPTH} events, each caused by a hook"))
    collector.conclude()
    return event


async def dispatch(  # noqa: C901 - the hot path: one more function would cost as much as a hook's call
    plan: EventPlan,
    name: str,
    fields: dict[str, Any],
    bags: Bags | None,
    deadlines: Deadlines,
    limit: float,
    owed: OwedEvents | None = None,
) -> Event:
    """Call the interceptors, which see, change and decide the event; then notify the observers, even after an error."""
    # An event that an interceptor fires runs in that interceptor's task: the chain of that task is around it. A task
    # that a hook started has no chain, and has its cause in a context variable.
    task = current_task(deadlines.loop)
    outer = deadlines.chains.get(task)
    cause = CAUSE.get() if outer is None else (outer[1]["id"], outer[3])
    stamp_event(fields, cause)
    if cause and cause[1] >= MAX_DEPTH:
        return refuse_event(plan, Event(name, fields, plan.writable, bags), owed)
    event: Event = InterceptedEvent(fields)
    event.name, event.writable, event.kept = name, plan.writable, bags
    event.hook = event.outcome = event.gateway = event.asked = None
    chain = deadlines.chains[task] = (outer, event, limit, cause[1] + 1 if cause else 0)
    if not deadlines.is_watched:
        deadlines.watch(limit)
    # An iterator, for a timeout: the collector then takes the remaining calls, which cannot be made any more.
    calls = iter(plan.calls)
    collector: OutcomeCollector | None = None
    try:
        for hook, call, is_async in calls:
            if plan.is_filtered and not hook.applies(name, event):
                continue
            event.hook = hook.owner
            try:
                # A coroutine function is awaited at once; any other answer needs a check, which costs more.
                if is_async:
                    answer = await call(event)
                elif hasattr(answer := call(event), "__await__"):
                    answer = await answer
            except BaseException as error:  # noqa: BLE001 - a hook's own error, or one that the collector raised
                collector = collector or OutcomeCollector(event, plan.honoured, owed)
                if collector.raised(hook, error, deadlines.deadline(event), calls):
                    break
            else:
                if answer is not None:
                    collector = collector or OutcomeCollector(event, plan.honoured, owed)
                    if collector.take(hook, answer):
                        break
        if collector is not None:
            collector.conclude()  # raises Pause if answers are missing
    finally:
        # The chain ends first: events by observers have this event as their cause, but not its time limit.
        deadlines.leave(chain, task)
        if plan.is_observed:
            plan.tell((name, dict(event), event["time"], cause, bags, event.outcome), owed)
    return event
