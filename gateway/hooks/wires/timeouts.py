"""What is done about a call that is over its time, step by step, each harder than the one before.

The task is cancelled; a handler that holds the loop is asked where it hangs, and made to let go; and what resists is
killed. A handler that is cancelled properly never sees the second step.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

import anyio

HELD_AFTER = 0.1  # seconds from the cancellation until we take the loop for held
DUMP_TIME = 0.03  # seconds to write down where it hangs
GRACE = 1.0  # seconds from the cancellation to the kill


class CallHolder(Protocol):
    """The process that holds the call."""

    def dump(self) -> None: ...

    def free(self) -> None: ...

    def kill(self, reason: str) -> None: ...


class CallTimeout:
    def __init__(self, holder: CallHolder, cancel: Callable[[], None], limit: float) -> None:
        self._holder = holder
        self._cancel = cancel
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(limit, self.begin)
        self._due = self._timer.when()
        self._has_ended = False
        self.limit = limit
        self.why = ""
        self.is_alone = True  # no other call ran beside it: what was started since then is this call's

    @property
    def is_late(self) -> bool:
        return bool(self.why)

    @property
    def age(self) -> float:
        return self._loop.time() - self._due + self.limit

    def abandon(self) -> None:
        """Nobody waits for the answer any more, which may have come in the same moment."""
        if not self.is_late and not self._has_ended:
            self.begin("was cancelled")

    def begin(self, why: str = "") -> None:
        """The time is over."""
        if not self.is_late:
            self.why = why or f"was over its {self.limit:g} s"
            self._end = self._loop.time() + GRACE
            self._cancel()
            self._next(HELD_AFTER, self._dump)

    def end(self) -> None:
        self._has_ended = True
        self._timer.cancel()

    def _next(self, delay: float, step: Callable[[], None]) -> None:
        self._timer.cancel()
        self._timer = self._loop.call_later(delay, step)

    def _dump(self) -> None:
        self._holder.dump()
        self._next(DUMP_TIME, self._free)

    def _free(self) -> None:
        """Again and again: it may just have been in the midst of a message, which must not be torn."""
        if self._loop.time() < self._end:
            self._holder.free()
            self._next(HELD_AFTER, self._free)
        else:
            self._holder.kill(f"{self.why} and did not let go")


class ActiveCalls:
    """The calls that are under way in one process, by their numbers."""

    def __init__(self) -> None:
        self._running: dict[int, CallTimeout] = {}
        self._settled: anyio.Event | None = None  # made where somebody waits for it

    def __len__(self) -> int:
        return len(self._running)

    def join(self, number: int, call: CallTimeout) -> None:
        if self._running:
            for each in (call, *self._running.values()):
                each.is_alone = False
        self._running[number] = call

    def leave(self, number: int) -> CallTimeout:
        call = self._running.pop(number)
        call.end()
        if not self._running and self._settled is not None:
            self._settled.set()
            self._settled = None
        return call

    async def settled(self) -> None:
        """Wait until every call has its answer."""
        while self._running:
            self._settled = self._settled or anyio.Event()
            await self._settled.wait()
