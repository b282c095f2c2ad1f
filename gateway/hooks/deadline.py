"""How long the interceptors of an event may take: one timer for all events that are under way.

Nearly every chain of interceptors is done before the loop turns once, so to begin one must cost next to nothing: it is
only written down. A timer, which runs while something is written down, looks who is still there; whoever it sees for
the first time has its limit from then on (a quarter of a second late at most), and whoever is over it is cancelled,
again every second until it yields. `asyncio.timeout` for each handler would cost forty times the call it guards.
"""

import asyncio
from asyncio import AbstractEventLoop, Task, current_task, get_running_loop
from typing import Any

TICK = 0.25
AGAIN = 1.0


class Deadline:
    """The limit of one chain. `cancels` says how often its task was cancelled for being over it."""

    __slots__ = ("before", "cancels", "due", "limit", "task")

    def __init__(self, task: "Task[Any] | None", limit: float) -> None:
        self.task = task
        self.limit = limit
        self.due: float | None = None
        self.before = 0
        self.cancels = 0

    @property
    def is_behind(self) -> bool:
        """Does a cancellation that arrives now come from this deadline alone?"""
        return self.cancels > 0 and not self.is_cancelled_from_outside

    @property
    def is_cancelled_from_outside(self) -> bool:
        """Has anybody else asked the task to end since the chain began?"""
        return self.task is not None and self.task.cancelling() - self.cancels > self.before

    def see(self, now: float) -> None:
        """Still there: begin to count, or cancel."""
        if self.task is None:
            return
        if self.due is None:
            self.due = now + self.limit
            self.before = self.task.cancelling()
        elif now >= self.due:
            self.due = now + AGAIN
            self.cancels += 1
            self.task.cancel("the interceptors of an event took too long")


class Deadlines:
    """The chains that are under way."""

    __slots__ = ("_armed", "_timer", "_watching", "loop")

    def __init__(self) -> None:
        self.loop: AbstractEventLoop | None = (
            None  # known while the registry is open: asking for it costs a system call
        )
        self._armed: set[Deadline] = set()
        self._watching: AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def arm(self, limit: float) -> Deadline:
        """A chain begins in the present task."""
        loop = self.loop or get_running_loop()
        deadline = Deadline(current_task(loop), limit)
        self._armed.add(deadline)
        if loop is not self._watching:
            self._watch(loop, limit)
        return deadline

    def disarm(self, deadline: Deadline) -> None:
        """The chain is over; cancellations that came from its deadline are taken back."""
        self._armed.discard(deadline)
        while deadline.cancels and deadline.task is not None:
            deadline.cancels -= 1
            deadline.task.uncancel()

    def _watch(self, loop: AbstractEventLoop, limit: float) -> None:
        self._watching = loop
        self._timer = loop.call_later(min(TICK, limit / 4), self._look, loop)

    def _look(self, loop: AbstractEventLoop) -> None:
        now = loop.time()
        for deadline in tuple(self._armed):
            deadline.see(now)
        self._watching = None
        if self._armed:
            self._watch(loop, min(deadline.limit for deadline in self._armed))

    def close(self) -> None:
        """The loop is about to end."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._watching = self.loop = None
