"""Mailboxes: each observer has a mailbox, so that firing an event waits for no observer.

A mailbox delivers its events in order, one at a time (`queued`) or up to `max` at a time (`parallel`). A mailbox holds
a thousand events. A full mailbox drops and counts the oldest event, and warns once until it has been empty again.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop, CancelledError, Future, current_task, get_running_loop
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from threading import get_ident
from time import perf_counter
from typing import Any, ClassVar, NoReturn, TypeAlias

import anyio
from anyio.abc import TaskGroup

from gateway.events import Bags, Event, Outcome, Pause
from gateway.hooks.cause import CAUSE, Cause, stamp_event
from gateway.hooks.hook import Hook

log = logging.getLogger("gateway.hooks")

CAPACITY = 1000
YIELD_AFTER = 0.005  # seconds after which a mailbox yields to the loop

# name, fields (its own, never changed), time, cause, the turn's bags, the interceptors' decision
QueuedEvent: TypeAlias = tuple[str, dict[str, Any], float, Cause | None, Bags | None, Outcome | Pause | None]


@dataclass(slots=True, eq=False)
class Observer(Hook):
    """A hook that observes: its events wait in a mailbox."""

    intercepts: ClassVar[bool] = False
    mailbox: "Mailbox" = field(init=False, repr=False)

    @property
    def queued(self) -> int:
        """Return the number of events that wait for the observer."""
        return len(self.mailbox.queue)


class ObservedEvent(Event):
    """An event for an observer: a copy for this observer alone, with the decision already made."""

    __slots__ = ()

    def ask(self, prompt: str, name: str | None = None, answer: Any = None) -> NoReturn:  # noqa: ARG002 - as Event.ask
        """Raise an error: an observer sees what has already happened."""
        raise RuntimeError(f"{self.hook} only observes {self.name}: a hook that asks must intercept it")


@dataclass(slots=True, eq=False)
class Mailbox:
    """The events that wait for one observer, and its runners: tasks that each deliver one event at a time."""

    hook: Observer
    _runner: "MailboxRunner"
    _max: int
    queue: deque[QueuedEvent] = field(default_factory=lambda: deque(maxlen=CAPACITY))
    is_idle: bool = True  # True if a runner sleeps, or another runner may start
    _runners: int = 0
    _open: dict[int, dict[str, Any]] = field(default_factory=dict)  # the fields of the events in delivery
    _sleepers: list[Future[None]] = field(default_factory=list)
    _waiters: list[Future[None]] = field(default_factory=list)
    _is_full: bool = False

    def __post_init__(self) -> None:
        self._runner.install(self)

    @property
    def is_quiet(self) -> bool:
        """Return True if no event waits or is in delivery."""
        return not (self.queue or self._open)

    def overflow(self) -> None:
        """Count and report the loss of the oldest event."""
        self.hook.dropped += 1
        if not self._is_full:
            self._is_full = True
            words = "%s does not keep up: %d events wait, the oldest are dropped"
            log.warning(words, self.hook, CAPACITY, extra={"hook": self.hook.key})

    def wake(self) -> None:
        """Wake a runner, from any thread, because an event waits."""
        self._runner.call(self.wake_runner)

    def wake_runner(self) -> None:
        """Wake or start one more runner, if possible."""
        if self._sleepers:
            sleeper = self._sleepers.pop()
            if not sleeper.done():
                sleeper.set_result(None)
        elif self._runners < self._max:
            self._runners += 1
            self._runner.start(self._serve, self.hook.key)
        self.is_idle = bool(self._sleepers) or self._runners < self._max

    def take_over(self, other: "Mailbox") -> None:
        """Take the waiting events of another mailbox, in order; an event in delivery stays there."""
        waiting = len(other.queue)
        self.queue.extend(other.queue)
        other.queue.clear()
        for _ in range(waiting):
            self.wake()

    async def wait_until_quiet(self) -> None:
        """Wait until all events are delivered."""
        while not self.is_quiet:
            self._waiters.append(waiter := get_running_loop().create_future())
            await waiter

    async def wait_until_told(self, session: Any) -> None:
        """Wait until the earlier events of this conversation, and of no conversation, are delivered."""
        waiting = [fields for fields in self._undelivered() if fields.get("session_key") in (session, None, "")]
        while any(fields is one for fields in self._undelivered() for one in waiting):
            self._waiters.append(waiter := get_running_loop().create_future())
            await waiter

    def _undelivered(self) -> Iterator[dict[str, Any]]:
        yield from (queued[1] for queued in self.queue)
        yield from self._open.values()

    def close(self) -> None:
        """Close the mailbox. Waiting events are dropped and counted; events in delivery are finished."""
        self.hook.dropped += len(self.queue)
        self.queue = deque(maxlen=0)
        self._max = 0
        self._runner.remove(self)
        self._runner.call(self._dismiss)

    def _dismiss(self) -> None:
        while self._sleepers:
            self.wake_runner()
        self._wake_waiters()

    async def _serve(self) -> None:
        while self._max:
            began = perf_counter()
            while self.queue:
                await self._deliver(self.queue.popleft())
                if perf_counter() - began > YIELD_AFTER:
                    await asyncio.sleep(0)
                    began = perf_counter()
            self._is_full = False
            self._sleepers.append(sleeper := get_running_loop().create_future())
            self.is_idle = True
            await sleeper

    def _wake_waiters(self) -> None:
        """Wake all waiters; each checks its own condition."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _deliver(self, queued: QueuedEvent) -> None:
        name, fields, at, cause, bags, outcome = queued
        stamp_event(fields, cause, at)
        hook = self.hook
        event = ObservedEvent(name, fields, None, bags, hook.owner)
        event.outcome = outcome
        CAUSE.set((fields["id"], cause[1] + 1 if cause else 0))
        self._open[id(fields)] = fields
        try:
            answer = hook.call(name, event)
            if hasattr(answer, "__await__"):
                await answer
        except (Exception, CancelledError, SystemExit, Pause) as error:  # an observer's own error
            task = current_task()
            if isinstance(error, CancelledError) and task and task.cancelling():
                raise
            hook.failed(name, error)
        finally:
            del self._open[id(fields)]
            if self._waiters:
                self._wake_waiters()


class MailboxRunner:
    """The tasks that empty the mailboxes of nested registries.

    The runner opens once: events before that wait, and events after its end are dropped.
    """

    def __init__(self) -> None:
        self._mailboxes: dict[Mailbox, None] = {}
        self._group: TaskGroup | None = None
        self._loop: AbstractEventLoop | None = None
        self._thread = 0
        self._context: Context | None = None
        self._is_closed = False

    def install(self, mailbox: Mailbox) -> None:
        """Add a mailbox to the mailboxes that this runner empties."""
        self._mailboxes[mailbox] = None
        if self._is_closed:
            mailbox.close()

    def remove(self, mailbox: Mailbox) -> None:
        """Remove the mailbox of an observer that is gone."""
        self._mailboxes.pop(mailbox, None)

    def call(self, function: Callable[[], None]) -> None:
        """Call the function on the loop: at once in the loop's thread, and not at all before delivery starts."""
        if self._group is None or self._loop is None:
            return
        if get_ident() == self._thread:
            function()
        else:
            self._loop.call_soon_threadsafe(function)

    def start(self, runner: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Start one more task for a mailbox, in the context of `open`, not of the event."""
        assert self._group is not None
        assert self._context is not None
        self._context.run(partial(self._group.start_soon, runner, name=f"hook {name}"))

    async def settled(self) -> None:
        """Wait until all events are delivered, including those that observers fire meanwhile."""
        while waiting := [mailbox for mailbox in tuple(self._mailboxes) if not mailbox.is_quiet]:
            if self._group is None:
                raise RuntimeError("nothing is delivered: the registry is not open (`async with registry`)")
            await waiting[0].wait_until_quiet()

    @asynccontextmanager
    async def open(self, grace: float) -> AsyncIterator[None]:
        """Deliver events within the context. When the context ends, waiting events have `grace` seconds."""
        if self._group or self._is_closed:
            raise RuntimeError("a registry opens once, the outermost one for all those within it")
        failure: BaseException | None = None
        async with anyio.create_task_group() as group:
            self._begin(group)
            try:
                yield
            except BaseException as error:  # noqa: BLE001 - raised again below, unchanged and outside a group
                failure = error
            with anyio.move_on_after(grace, shield=True):
                await self.settled()
            self._end()
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure

    def _begin(self, group: TaskGroup) -> None:
        self._group, self._loop, self._thread = group, get_running_loop(), get_ident()
        self._context = copy_context()
        for mailbox in tuple(self._mailboxes):
            for _ in range(len(mailbox.queue)):
                mailbox.wake_runner()

    def _end(self) -> None:
        self._group = None
        self._is_closed = True
        for mailbox in tuple(self._mailboxes):
            if lost := len(mailbox.queue):
                words = "%s was not told of the last %d of its events: the time to stop was over"
                log.warning(words, mailbox.hook, lost, extra={"hook": mailbox.hook.key})
            mailbox.close()
