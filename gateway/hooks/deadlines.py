"""The events in progress: the event that each task handles, and the time limit of its interceptors.

The start of a chain, the interceptors of an event, must cost next to nothing, since nearly every chain ends before the
loop turns once. So the start only notes the chain, by its task. A timer runs while any chain is noted. The limit of a
chain begins when the timer first sees the chain, at most a quarter of a second late. The timer cancels a chain over its
limit, and does so again every second until the chain yields. `asyncio.timeout` around each hook would cost forty times
the call itself.
"""

from asyncio import AbstractEventLoop, Task, TimerHandle, current_task, get_running_loop
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.events import Event
from gateway.hooks.cause import CAUSE, Cause

CHECK_INTERVAL = 0.25
CANCEL_INTERVAL = 1.0

# The outer chain (a hook fired an event and waits for it), the event, its limit, its depth.
ActiveChain: TypeAlias = "tuple[ActiveChain | None, Event, float, int]"


class Deadline:
    """The limit of a chain that the timer has seen. `cancels` counts the cancellations of its task."""

    __slots__ = ("before", "cancels", "due", "limit", "task")

    def __init__(self, task: Task[Any] | None, limit: float, due: float) -> None:
        self.task = task
        self.limit = limit
        self.due = due
        self.before = task.cancelling() if task else 0
        self.cancels = 0

    @property
    def is_behind(self) -> bool:
        """Return True if a cancellation that arrives now comes from this deadline alone."""
        return self.task is not None and 0 < self.cancels >= self.task.cancelling() - self.before

    @property
    def is_cancelling(self) -> bool:
        """Return True if the task was ever asked to end."""
        return self.task is not None and self.task.cancelling() > 0

    def enforce(self, now: float) -> None:
        """Cancel the task if the deadline has passed."""
        if now >= self.due:
            self.due = now + CANCEL_INTERVAL
            self.cancels += 1
            assert self.task  # chains without a task have no timer
            self.task.cancel("the hooks of an event took too long")

    def undo(self) -> None:
        """Undo the cancellations of this deadline."""
        if self.task is not None:
            for _ in range(self.cancels):
                self.task.uncancel()


@dataclass(slots=True, eq=False)
class Deadlines:
    """The chains in progress, the innermost chain of each task; `dispatch` adds and removes them."""

    chains: dict[Task[Any] | None, ActiveChain] = field(default_factory=dict)
    loop: AbstractEventLoop | None = None  # while the registry is open: asking for the loop is a system call
    is_watched: bool = False
    _watched: AbstractEventLoop | None = None
    _timer: TimerHandle | None = None
    _deadlines: dict[int, Deadline] = field(default_factory=dict)

    @classmethod
    def without_loop(cls) -> "Deadlines":
        """Create the deadlines for a thread without a loop: all its chains are nested, and no timer runs."""
        deadlines = cls()
        deadlines.loop = object()  # type: ignore[assignment]  # a loop without a current task
        deadlines.is_watched = True
        return deadlines

    def find_innermost(self) -> Event:
        """Return the event that the current task handles."""
        return self.chains[current_task(self.loop)][1]

    def cause(self) -> Cause | None:
        """Return the id and depth of the event that the current task handles."""
        if self.chains and (chain := self.chains.get(current_task(self.loop))):
            return chain[1]["id"], chain[3]
        return CAUSE.get()

    def watch(self, limit: float) -> None:
        """Start the timer."""
        loop = get_running_loop()
        if loop is not self._watched:
            self._watched = loop
            self._timer = loop.call_later(min(CHECK_INTERVAL, limit / 4), self._look, loop)
            self.is_watched = loop is self.loop

    def deadline(self, event: Event) -> Deadline:
        """Return the deadline of a chain of the current task."""
        return self._deadlines.get(id(event)) or Deadline(current_task(self.loop), 0, 0)

    def leave(self, chain: ActiveChain, task: Task[Any] | None) -> None:
        """End a chain, and undo the cancellations of its deadline."""
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
        """Stop the timer, because the loop ends."""
        if self._timer is not None:
            self._timer.cancel()
        self.loop = self._watched = self._timer = None
        self.is_watched = False
