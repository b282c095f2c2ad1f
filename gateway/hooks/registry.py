"""The registry: it holds the hooks, and leads each event to them.

    hooks = HookRegistry()

    @hooks.on("tool:before", when={"tool": "shell"})
    async def guard(event):
        if "rm -rf" in event["args"]["command"]:
            return Deny("Not on this machine.")

    @hooks.watch("tool:*")
    def note(event_type, context):
        print(event_type, context["tool"])

    async with hooks:
        event = await hooks.run("tool:before", tool="shell", args={"command": "ls"})   # event["args"], event.outcome
        hooks.emit("my:event", any="field")                                            # returns at once

The contract
- `on` registers an interceptor: `run` awaits the interceptors one after the other. An interceptor changes fields, in
  place or by returning a mapping; None means unchanged. Interceptors decide by End, Deny or Retry, returned or raised.
  Interceptors cannot write a field that the catalogue calls read-only; an outcome that the event does not support has
  no effect but a warning. Events outside of the catalogue have no such rules.
- `watch` registers an observer: observers get a copy of the event after the interceptors, in the background, each in
  its own order. `emit` reaches observers only. `emit` never waits and never raises, even before the registry is open
  and after it is closed.
- Order: the outer registry's hooks first (gateway, agent, conversation), then `order`, low first, then an exact name
  before a glob, then the order of registration; tied hooks run in reverse at `*:after`.
- An event calls a hook once, however many of its globs match; a `hook:*` event never calls the hook that it is about;
  and in a chain of events that hooks caused, the ninth event calls no hook.
- `run_sync` is `run` for callers that cannot await. A coroutine function works there if it does not really wait;
  otherwise a RuntimeError names the hook, and no further hook is called.
- Functions and coroutine functions mix: every awaitable that a hook returns is awaited. A plain function runs on the
  loop; a function that never awaits cannot be interrupted. Any thread may register and remove hooks at any time, also
  during an event; the change counts from the next event on.
- A failure of a hook affects no other hook: the failure is logged and the next hook runs (`on_error="skip"`), or the
  operation is denied ("deny", for guards), or the caller gets the error ("raise"). All interceptors of an event
  together have 30 seconds; an interceptor that has not answered by then has failed. Cancellation and KeyboardInterrupt
  are raised again.
- If `event.ask` has no answer yet, the other hooks run too, then `run` raises Pause with all questions.
- An event without hooks costs a dictionary look-up.
"""

from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from time import time
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, overload

from gateway.events import Bags, Decorated, Event, OnError, find_marked
from gateway.hooks.cause import CAUSE, Cause
from gateway.hooks.chain import dispatch, notify_observers
from gateway.hooks.deadlines import Deadlines
from gateway.hooks.filters import compile_filter
from gateway.hooks.hook import Handler, Hook
from gateway.hooks.mailbox import Mailbox, MailboxRunner, Observer
from gateway.hooks.recorder import OwedEvents, Recorder
from gateway.hooks.scope import HookScope, NoAnswers
from gateway.hooks.subscriptions import Subscription, Subscriptions
from gateway.hooks.sync import dispatch_sync
from gateway.hooks.withheld_codes import WithheldCodes, WithheldFields

INTERCEPT_LIMIT = 30.0  # seconds for all interceptors of one event
OBSERVER_GRACE = 2.0  # seconds for the observers at the end, to handle their waiting events

EventNames: TypeAlias = str | Iterable[str]


class RecorderSet:
    """The hooks of one scope that record events; see `gateway.hooks.recorder`."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions

    def add(
        self, names: EventNames, write: Handler, *, key: str, is_written: Callable[[], Awaitable[None]]
    ) -> Subscription:
        """Let `write(event, owed)` record these events at once."""
        return self._subscriptions.add(Recorder(write, _patterns_from(names), key, is_written=is_written))

    def want(self, *names: str) -> bool:
        """Return True if any of these events is recorded."""
        find = self._subscriptions.find
        return any((self._subscriptions.known.get(name) or find(name)).recorders for name in names)

    async def settled(self) -> None:
        """Wait until all events outside of turns are in the journal, if hooks need these events there.

        A caller that fires events for a request waits here before it answers the request, so that events come no faster
        than the journal takes them.
        """
        for hook in self._subscriptions.hooks:
            if isinstance(hook, Recorder):
                await hook.is_written()


class HookRegistry:
    """The hooks of one scope. `parent` is the scope around it, whose hooks are called first."""

    def __init__(
        self,
        parent: "HookRegistry | None" = None,
        lifo: bool = True,
        *,
        limit: float = INTERCEPT_LIMIT,
        grace: float = OBSERVER_GRACE,
    ) -> None:
        outer = parent._subscriptions if parent else None  # noqa: SLF001 - of the same class, as the two below
        self._subscriptions: Subscriptions = Subscriptions(outer, lifo)
        self._mailbox_runner: MailboxRunner = parent._mailbox_runner if parent else MailboxRunner()  # noqa: SLF001
        self._deadlines: Deadlines = parent._deadlines if parent else Deadlines()  # noqa: SLF001
        self.withheld: WithheldCodes = parent.withheld if parent else WithheldCodes()
        self.recorders = RecorderSet(self._subscriptions)
        self._known = self._subscriptions.known
        self._limit = limit
        self._grace = grace
        self._opening: AbstractAsyncContextManager[None] | None = None

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """Return the hooks of this scope, as registered, each with its failures and its waiting events."""
        return self._subscriptions.hooks

    @overload
    def on(self, names: EventNames, fn: None = None, **options: Any) -> Callable[[Decorated], Decorated]: ...
    @overload
    def on(self, names: EventNames, fn: Handler, **options: Any) -> Subscription: ...
    def on(
        self,
        names: EventNames,
        fn: Handler | None = None,
        *,
        order: float = 0,
        when: Mapping[str, Any] | None = None,
        on_error: OnError = "skip",
        timeout: float | None = None,
        key: str | None = None,
        **unknown: Any,
    ) -> Any:
        """Intercept these events with `fn(event)`. Return the Subscription, or, without `fn`, a decorator."""
        _check_options(unknown)
        patterns, matches = _patterns_from(names), compile_filter(when)

        def subscribe(function: Handler) -> Subscription:
            return self._subscriptions.add(Hook(function, patterns, key, order, matches, on_error, timeout))

        return _subscribe_or_decorate(subscribe, fn)

    @overload
    def watch(self, names: EventNames, fn: None = None, **options: Any) -> Callable[[Decorated], Decorated]: ...
    @overload
    def watch(self, names: EventNames, fn: Handler, **options: Any) -> Subscription: ...
    def watch(
        self,
        names: EventNames,
        fn: Handler | None = None,
        *,
        when: Mapping[str, Any] | None = None,
        mode: Literal["queued", "parallel"] = "queued",
        max: int = 4,  # noqa: A002 - the manifest's own word
        timeout: float | None = None,
        key: str | None = None,
        **unknown: Any,
    ) -> Any:
        """Observe these events with `fn(event_type, context)`: in order, or `max` at a time with `mode="parallel"`."""
        _check_options(unknown)
        patterns, matches = _patterns_from(names), compile_filter(when)
        if mode not in {"queued", "parallel"} or max < 1:
            raise ValueError(f"mode is queued, or parallel with a max of at least 1; not {mode!r} with {max!r}")

        def subscribe(function: Handler) -> Subscription:
            hook = Observer(function, patterns, key, matches=matches, timeout=timeout)
            hook.mailbox = Mailbox(hook, self._mailbox_runner, max if mode == "parallel" else 1)
            return self._subscriptions.add(hook)

        return _subscribe_or_decorate(subscribe, fn)

    def add(self, owner: Any) -> Subscription:
        """Register the methods of an object, or the functions of a module, that are marked with `@on`."""
        found = list(find_marked(owner))
        if not found:
            raise ValueError(f"{owner!r} has nothing that is marked with @on")
        return Subscription.join(self.on(mark.names, function, **mark.options) for function, mark in found)

    def at(self, name: str, *others: str) -> list[Hook]:
        """List the hooks of an event: its interceptors in firing order, then its observers.

        For several events, the hooks of the first event come first, then the hooks of the next event.
        """
        find = self._subscriptions.find
        return [hook for name in (name, *others) for hook in (self._known.get(name) or find(name)).hooks]

    def wants(self, name: str) -> bool:
        """Return True if any hook listens to this event. Busy code calls this before it builds an event."""
        return bool((self._known.get(name) or self._subscriptions.find(name)).hooks)

    def emit(self, name: str, /, **fields: Any) -> None:
        """Fire the event, for observers only."""
        plan = self._known.get(name) or self._subscriptions.find(name)
        if plan.is_observed:
            cause = self._deadlines.cause() if self._deadlines.chains else CAUSE.get()
            shown = self.withheld.hide(fields) if self.withheld.kinds else fields
            plan.tell((name, shown, time(), cause, None, None))

    def run(self, name: str, /, **fields: Any) -> Coroutine[Any, Any, Event]:
        """Fire the event for its interceptors, then for its observers. Return the event with its outcome.

        Raises Pause if answers are missing, and the error of a hook that was registered with `on_error="raise"`.
        """
        plan = self._known.get(name) or self._subscriptions.find(name)
        held = self.withheld.hold(fields) if self.withheld.kinds else None
        shown = held.shown if held else fields
        if plan.calls:
            running = dispatch(plan, name, shown, None, self._deadlines, self._limit)
        else:
            running = notify_observers(plan, name, shown, None, self._deadlines)
        return _restore(held, running) if held else running

    def run_sync(self, name: str, /, **fields: Any) -> Event:
        """Work as `run` for callers that cannot await: without a loop, or in a plain function below a running loop.

        Raises RuntimeError with the name of a hook that would have to wait.
        """
        plan = self._known.get(name) or self._subscriptions.find(name)
        held = self.withheld.hold(fields)
        return held.restore(dispatch_sync(plan, name, held.shown, self._deadlines))

    def scope(
        self,
        fields: Mapping[str, Any],
        session_bag: dict[str, Any] | None = None,
        answers: Mapping[str, Any] | None = None,
        owed: OwedEvents | None = None,
    ) -> HookScope:
        """Return this registry for one turn. `answers` maps questions to answers; None if no one can answer.

        Recorded events of the turn wait in `owed`, and go into the journal with the turn's own appends.
        """
        bags = Bags(session_bag, NoAnswers() if answers is None else answers)
        return HookScope(self._subscriptions, self.withheld, self._deadlines, self._limit, fields, bags, owed)

    @property
    def current_cause(self) -> Cause | None:
        """Return the id and depth of the event that the current task handles."""
        return self._deadlines.cause()

    async def settled(self) -> None:
        """Wait until observers have handled all fired events, and recorded events are in the journal."""
        await self._mailbox_runner.settled()
        await self.recorders.settled()

    def clear(self) -> None:
        """Remove all hooks of this scope."""
        for hook in self.hooks:
            self._subscriptions.remove(hook)

    async def __aenter__(self) -> Self:
        self._opening = self._mailbox_runner.open(self._grace)
        await self._opening.__aenter__()
        self._deadlines.loop = get_running_loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._opening
        try:
            return await self._opening.__aexit__(kind, error, trace)
        finally:
            self._deadlines.close()


async def _restore(held: WithheldFields, running: Coroutine[Any, Any, Event]) -> Event:
    return held.restore(await running)


def _check_options(unknown: Mapping[str, Any]) -> None:
    if "priority" in unknown:
        raise TypeError("priority= is high first to some and low first to others: say order=, where the low go first")
    if unknown:
        raise TypeError(f"unknown option {next(iter(unknown))!r} of a hook")


def _patterns_from(names: EventNames) -> tuple[str, ...]:
    """Return the names, each once, in the given order."""
    patterns = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else ()
    if not patterns or not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise ValueError(f"a hook needs the name of an event, as in 'tool:before', not {names!r}")
    return tuple(dict.fromkeys(patterns))


def _subscribe_or_decorate(subscribe: Callable[[Handler], Subscription], fn: Handler | None) -> Any:
    if fn is not None:
        return subscribe(fn)

    def decorate(function: Handler) -> Handler:
        subscribe(function)
        return function

    return decorate
