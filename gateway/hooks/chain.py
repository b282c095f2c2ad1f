"""One event on its way: through its interceptors, one after the other, then to its observers.

How it works. A plan (`EventPlan`) says which hooks an event has; it is found once for each name, so that an event costs
a dictionary's lookup and the calls themselves. `dispatch` walks through the calls of a plan and holds four things:

- the event: one dict, filled with the caller's fields, that all interceptors change in place. Its `hook` is set before
  each call: it says whose bag `event.own` is.
- the chain: what this event was fired from, for as long as its interceptors run. `Deadlines` keeps it by task: so an
  event that an interceptor fires knows its cause, and a timer can see a chain that takes too long. The timer cancels
  the task; `OutcomeCollector.raised` tells such a cancellation from a real one.
- the collector: made when the first hook answers something or fails, since nearly all answer None. It decides what an
  answer comes to, and returns True where the chain ends.
- the cause: which event this one came of, and how many came before it. At a depth of eight nobody is called.

Whatever happens, an error and a cancellation included, the chain is taken out and the observers see the event as it is
by then. There is no state beside these: two events at once, or one within the other, share nothing but the plan.
"""

from asyncio import current_task
from time import time
from typing import Any

from gateway.errors import HookError
from gateway.events import Bags, Event
from gateway.events.fields import SHORT_FORMS, SHORT_LENGTH
from gateway.hooks.cause import CAUSE, MAX_DEPTH, stamp_event
from gateway.hooks.deadlines import Deadlines
from gateway.hooks.outcomes import OutcomeCollector
from gateway.hooks.recorder import OwedEvents
from gateway.hooks.subscriptions import EventPlan


class InterceptedEvent(Event):
    """An event on its way. A constructor in Python would cost more than a handler's call, so `dispatch` fills it.

    A text that a hook changes, say to redact it, is changed in its short form too, for all hooks that come after.
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
    """Pass on an event that has no interceptors."""
    if plan.is_observed:
        plan.tell((name, fields, time(), deadlines.cause(), bags, None), owed)
    return Event(name, fields, None, bags)


def refuse_event(plan: EventPlan, event: Event, owed: OwedEvents | None) -> Event:
    """Conclude an event that came of too many others: nobody is called, and hooks that guard something deny."""
    collector = OutcomeCollector(event, plan.honoured, owed)
    collector.fail(plan.calls, HookError(f"it came of {MAX_DEPTH} events, each caused by a hook"))
    collector.conclude()
    return event


async def dispatch(  # noqa: C901 - the hot path: one function more would cost as much as a handler's call
    plan: EventPlan,
    name: str,
    fields: dict[str, Any],
    bags: Bags | None,
    deadlines: Deadlines,
    limit: float,
    owed: OwedEvents | None = None,
) -> Event:
    """Let every interceptor see, change and decide the event; then tell the observers, also when this raises."""
    # An event that an interceptor fires runs in that interceptor's task: the chain there is the one around this one.
    # A task that a hook started has none, and remembers its cause in a context variable.
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
    # An iterator, for when the time is over: the collector then takes the rest of the calls, none of which can be made.
    calls = iter(plan.calls)
    collector: OutcomeCollector | None = None
    try:
        for hook, call, is_async in calls:
            if plan.is_filtered and not hook.applies(name, event):
                continue
            event.hook = hook.owner
            try:
                # A coroutine function is awaited unseen; of any other answer it must be asked, which costs more.
                if is_async:
                    answer = await call(event)
                elif hasattr(answer := call(event), "__await__"):
                    answer = await answer
            except BaseException as error:  # noqa: BLE001 - the hook's own, or passed on by the collector
                collector = collector or OutcomeCollector(event, plan.honoured, owed)
                if collector.raised(hook, error, deadlines.deadline(event), calls):
                    break
            else:
                if answer is not None:
                    collector = collector or OutcomeCollector(event, plan.honoured, owed)
                    if collector.take(hook, answer):
                        break
        if collector is not None:
            collector.conclude()  # raises Pause where answers are missing
    finally:
        # First the chain goes: what observers cause has this event as its cause, and no longer its time limit.
        deadlines.leave(chain, task)
        if plan.is_observed:
            plan.tell((name, dict(event), event["time"], cause, bags, event.outcome), owed)
    return event
