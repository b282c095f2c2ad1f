"""The events that are under way: which one is being handled here and now, and how long its interceptors may take.

To begin a chain of interceptors must cost next to nothing, since nearly every one is done before the loop turns once.
So it is only noted, by its task. A timer, which runs while anything is noted, looks who is there; whom it sees for the
first time has its limit from then on (a quarter of a second late at most), and who is over it is cancelled, and
again every second until it yields. `asyncio.timeout` around each handler would cost forty times the call it guards.
"""

from asyncio import AbstractEventLoop, Task, TimerHandle, current_task, get_running_loop
from typing import Any, TypeAlias

from gateway.events import Event
from gateway.hooks.cause import CAUSE, Cause

CHECK_INTERVAL = 0.25
CANCEL_INTERVAL = 1.0

# The chain that this one is part of (a hook fired an event and waits for it), the event, its limit, its depth.
ActiveChain: TypeAlias = "tuple[ActiveChain | None, Event, float, int]"


class Deadline:
    """The limit of a chain that was seen to wait. `cancels` counts how often its task was cancelled for it."""

    __slots__ = ("before", "cancels", "due", "limit", "task")

    def __init__(self, task: Task[Any] | None, limit: float, due: float) -> None:
        self.task = task
        self.limit = limit
        self.due = due
        self.before = task.cancelling() if task else 0
        self.cancels = 0

    @property
    def is_behind(self) -> bool:
        """Does a cancellation that arrives now come from this deadline alone, and from nobody since it was seen?"""
        return self.task is not None and 0 < self.cancels >= self.task.cancelling() - self.before

    @property
    def is_cancelling(self) -> bool:
        """Has somebody asked the task to end, at whatever time?"""
        return self.task is not None and self.task.cancelling() > 0

    def enforce(self, now: float) -> None:
        """Cancel, when it is time."""
        if now >= self.due:
            self.due = now + CANCEL_INTERVAL
            self.cancels += 1
            assert self.task  # those without one are never enforced
            self.task.cancel("the hooks of an event took too long")

    def undo(self) -> None:
        """Take its cancellations back."""
        if self.task is not None:
            for _ in range(self.cancels):
                self.task.uncancel()


class Deadlines:
    """The chains that are under way, the innermost of each task; `dispatch` notes them and takes them out."""

    __slots__ = ("_deadlines", "_timer", "_watched", "chains", "is_watched", "loop")

    def __init__(self) -> None:
        self.chains: dict[Task[Any] | None, ActiveChain] = {}
        self.loop: AbstractEventLoop | None = None  # known while the registry is open: to ask for it is a system call
        self.is_watched = False
        self._watched: AbstractEventLoop | None = None
        self._timer: TimerHandle | None = None
        self._deadlines: dict[int, Deadline] = {}

    @classmethod
    def without_loop(cls) -> "Deadlines":
        """For the chains of a thread that has no loop: there is no task, so one runs within the other, and no timer."""
        deadlines = cls()
        deadlines.loop = object()  # type: ignore[assignment]  # a loop that has no task now
        deadlines.is_watched = True
        return deadlines

    def find_innermost(self) -> Event:
        """The event that is being handled in the present task."""
        return self.chains[current_task(self.loop)][1]

    def cause(self) -> Cause | None:
        """The event that is being handled here and now."""
        if self.chains and (chain := self.chains.get(current_task(self.loop))):
            return chain[1]["id"], chain[3]
        return CAUSE.get()

    def watch(self, limit: float) -> None:
        """Have the timer run."""
        loop = get_running_loop()
        if loop is not self._watched:
            self._watched = loop
            self._timer = loop.call_later(min(CHECK_INTERVAL, limit / 4), self._look, loop)
            self.is_watched = loop is self.loop

    def deadline(self, event: Event) -> Deadline:
        """The deadline of a chain that is under way in the present task."""
        return self._deadlines.get(id(event)) or Deadline(current_task(self.loop), 0, 0)

    def leave(self, chain: ActiveChain, task: Task[Any] | None) -> None:
        """The chain is over; what its deadline has cancelled is taken back."""
        outer, event, _, _ = chain
        if outer is None:
            del self.chains[task]
        else:
            self.chains[task] = outer
        if self._deadlines and (deadline := self._deadlines.pop(id(event), None)):
            deadline.undo()

    def _look(self, loop: AbstractEventLoop) -> None:
        now = loop.time()
        deadlines = {}
        for task, innermost in tuple(self.chains.items()):
            chain: ActiveChain | None = innermost
            while chain and task:
                chain, event, limit, _ = chain
                deadlines[id(event)] = self._deadlines.get(id(event)) or Deadline(task, limit, now + limit)
        self._deadlines = deadlines
        for deadline in tuple(deadlines.values()):
            deadline.enforce(now)
        self._watched, self.is_watched = None, False
        if deadlines:
            self.watch(min(deadline.limit for deadline in deadlines.values()))

    def close(self) -> None:
        """The loop is about to end."""
        if self._timer is not None:
            self._timer.cancel()
        self.loop = self._watched = self._timer = None
        self.is_watched = False
