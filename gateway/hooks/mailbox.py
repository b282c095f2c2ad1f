"""Observers: each has a mailbox, so that whoever tells of an event waits for none of them.

What is put into a mailbox comes out in order, one at a time (`queued`) or up to `max` at a time (`parallel`). It holds
a thousand events; when it is full the oldest goes, is counted, and is warned of once until the mailbox was empty again.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop, CancelledError, Future, current_task, get_running_loop
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from functools import partial
from threading import get_ident
from time import perf_counter
from typing import Any, NoReturn, Protocol, TypeAlias

import anyio
from anyio.abc import TaskGroup

from gateway.events import Bags, Event, Outcome, Pause
from gateway.hooks.cause import CAUSE, MAX_DEPTH, Cause, stamp_event
from gateway.hooks.hook import Hook, MailboxProtocol

log = logging.getLogger("gateway.hooks")

CAPACITY = 1000
YIELD_AFTER = 0.005  # seconds after which a mailbox lets the loop turn, whatever its observer does

# name, fields (the letter's own, never changed), when, cause, the turn's bags, what the interceptors decided
QueuedEvent: TypeAlias = tuple[str, dict[str, Any], float, Cause | None, Bags | None, Outcome | Pause | None]


def enqueue_event(boxes: Iterable[MailboxProtocol], letter: QueuedEvent) -> None:
    """Put an event into the mailboxes."""
    cause = letter[3]
    if cause is not None and cause[1] >= MAX_DEPTH:
        log.warning("%s is not told: it came of %d events, each caused by a hook", letter[0], MAX_DEPTH)
        return
    for box in boxes:
        queue = box.queue
        if len(queue) == CAPACITY:
            box.overflow()
        queue.append(letter)
        if box.is_idle:
            box.wake()


class MailboxRunnerProtocol(Protocol):
    """Where mailboxes are emptied, as far as one of them needs it."""

    def install(self, box: "Mailbox") -> None: ...
    def remove(self, box: "Mailbox") -> None: ...
    def call(self, function: Callable[[], None]) -> None: ...
    def start(self, runner: Callable[[], Coroutine[Any, Any, None]], name: str) -> None: ...


class ObservedEvent(Event):
    """An event as an observer sees it: a copy of its own, of what is decided already."""

    __slots__ = ()

    def ask(self, prompt: str, name: str | None = None, answer: Any = None) -> NoReturn:  # noqa: ARG002 - as Event.ask
        """Not for observers: what they see has happened."""
        raise RuntimeError(f"{self.hook} only observes {self.name}: a hook that asks must intercept it")


class Mailbox:
    """The events that wait for one observer, and its runners, who deliver them one at a time each."""

    __slots__ = (
        "_busy",
        "_is_full",
        "_mailroom",
        "_max",
        "_runners",
        "_sleepers",
        "_waiters",
        "hook",
        "is_idle",
        "queue",
    )

    def __init__(self, hook: Hook, mailroom: MailboxRunnerProtocol, max: int) -> None:  # noqa: A002 - the manifest's own word
        self.hook = hook
        self.queue: deque[QueuedEvent] = deque(maxlen=CAPACITY)
        self.is_idle = True  # is there a runner who sleeps, or may there be one more?
        self._mailroom = mailroom
        self._max = max
        self._runners = 0
        self._busy = 0
        self._sleepers: list[Future[None]] = []
        self._waiters: list[Future[None]] = []
        self._is_full = False
        mailroom.install(self)

    @property
    def is_quiet(self) -> bool:
        """Is nothing left to do?"""
        return not (self.queue or self._busy)

    def overflow(self) -> None:
        """The oldest event is about to be lost."""
        self.hook.health.dropped += 1
        if not self._is_full:
            self._is_full = True
            words = "%s does not keep up: %d events wait, the oldest are dropped"
            log.warning(words, self.hook, CAPACITY, extra={"hook": self.hook.key})

    def wake(self) -> None:
        """There is something to deliver; from any thread."""
        self._mailroom.call(self.wake_runner)

    def wake_runner(self) -> None:
        """One more runner goes to work, if there is one."""
        if self._sleepers:
            sleeper = self._sleepers.pop()
            if not sleeper.done():
                sleeper.set_result(None)
        elif self._runners < self._max:
            self._runners += 1
            self._mailroom.start(self._serve, self.hook.key)
        self.is_idle = bool(self._sleepers) or self._runners < self._max

    async def wait_until_quiet(self) -> None:
        """Wait until nothing is left to do."""
        if not self.is_quiet:
            self._waiters.append(waiter := get_running_loop().create_future())
            await waiter

    def close(self) -> None:
        """Nothing more is taken, and what waits is not delivered; what is being delivered comes to its end."""
        self.queue = deque(maxlen=0)
        self._max = 0
        self._mailroom.remove(self)
        self._mailroom.call(self._dismiss)

    def _dismiss(self) -> None:
        while self._sleepers:
            self.wake_runner()

    async def _serve(self) -> None:
        while self._max:
            began = perf_counter()
            while self.queue:
                await self._deliver(self.queue.popleft())
                if perf_counter() - began > YIELD_AFTER:
                    await asyncio.sleep(0)
                    began = perf_counter()
            self._is_full = False
            self._report_quiet()
            self._sleepers.append(sleeper := get_running_loop().create_future())
            self.is_idle = True
            await sleeper
        self._report_quiet()

    def _report_quiet(self) -> None:
        while self.is_quiet and self._waiters:
            waiter = self._waiters.pop()
            if not waiter.done():
                waiter.set_result(None)

    async def _deliver(self, letter: QueuedEvent) -> None:
        name, fields, at, cause, bags, outcome = letter
        stamp_event(fields, cause, at)
        hook = self.hook
        event = ObservedEvent(name, fields, None, bags, hook.owner)
        event.outcome = outcome
        CAUSE.set((fields["id"], cause[1] + 1 if cause else 0))
        self._busy += 1
        hook.health.called(at)
        began = perf_counter()
        try:
            answer = hook.call(name, event)
            if hasattr(answer, "__await__"):
                await answer
        except (Exception, CancelledError, SystemExit, Pause) as error:  # an observer's own
            task = current_task()
            if isinstance(error, CancelledError) and task and task.cancelling():
                raise
            hook.failed(name, error)
        finally:
            self._busy -= 1
            hook.health.timed(perf_counter() - began)


class MailboxRunner:
    """The mailboxes of nested registries. It opens once; what is told earlier waits, what is told later is dropped."""

    def __init__(self) -> None:
        self._boxes: dict[Mailbox, None] = {}
        self._group: TaskGroup | None = None
        self._loop: AbstractEventLoop | None = None
        self._thread = 0
        self._context: Context | None = None
        self._is_closed = False

    def install(self, box: Mailbox) -> None:
        """One more mailbox to empty."""
        self._boxes[box] = None
        if self._is_closed:
            box.close()

    def remove(self, box: Mailbox) -> None:
        """Its observer is gone."""
        self._boxes.pop(box, None)

    def call(self, function: Callable[[], None]) -> None:
        """Have it called on the loop: at once when this is its thread, never when nothing is delivered here."""
        if self._group is None or self._loop is None:
            return
        if get_ident() == self._thread:
            function()
        else:
            self._loop.call_soon_threadsafe(function)

    def start(self, runner: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """A mailbox wants one more runner. It gets the context in which the room was opened, not that of who told."""
        assert self._group is not None
        assert self._context is not None
        self._context.run(partial(self._group.start_soon, runner, name=f"hook {name}"))

    async def settled(self) -> None:
        """Wait until all that was told has been delivered, and what the observers told on that occasion too."""
        while waiting := [box for box in tuple(self._boxes) if not box.is_quiet]:
            if self._group is None:
                raise RuntimeError("nothing is delivered: the registry is not open (`async with registry`)")
            await waiting[0].wait_until_quiet()

    @asynccontextmanager
    async def open(self, grace: float) -> AsyncIterator[None]:
        """Deliver. At the end, what is left has `grace` seconds."""
        if self._group or self._is_closed:
            raise RuntimeError("a registry opens once, the outermost one for all those within it")
        failure: BaseException | None = None
        async with anyio.create_task_group() as group:
            self._begin(group)
            try:
                yield
            except BaseException as error:  # noqa: BLE001 - raised again below, as it came and not within a group
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
        for box in tuple(self._boxes):
            for _ in range(len(box.queue)):
                box.wake_runner()

    def _end(self) -> None:
        self._group = None
        self._is_closed = True
        for box in tuple(self._boxes):
            if box.queue:
                box.hook.health.dropped += len(box.queue)
                words = "%s was not told of %d events: the time to stop was over"
                log.warning(words, box.hook, len(box.queue), extra={"hook": box.hook.key})
            box.close()
