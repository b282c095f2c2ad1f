"""The time that other programs on the machine take from ours: a test that measures seconds must not measure it."""

import asyncio
import math
import select
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from gateway.testing.patience import STRIDE, Patience, wait_until


class Stopwatch:
    """Seconds of our own running time, to a tenth: `with Stopwatch() as watch: ...`, and then `watch.seconds`."""

    def __enter__(self) -> Self:
        self._counted = Patience(math.inf)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        return self._counted.spent

    def _count(self) -> None:
        while not self._counted.is_over() and not self._is_over.wait(STRIDE):
            pass


def measure_wait(thread: str = "thread-self") -> float:
    """Seconds that this thread, or the main one of a process, could have run while others did."""
    told = Path("/proc", thread, "schedstat")
    return int(told.read_text().split()[1]) / 1e9 if told.exists() else 0.0


def measure_both_waits(pid: int) -> float:
    """Those of this thread, and of the process that answers it."""
    return measure_wait() + measure_wait(str(pid))


@asynccontextmanager
async def fail_after(seconds: float) -> AsyncIterator[None]:
    """As anyio's, in our own running time; for what no test's timeout ends."""

    async def watch() -> None:
        patience = Patience(seconds)
        while True:
            await anyio.sleep(STRIDE)
            if patience.is_over():
                return scope.cancel()

    with anyio.CancelScope() as scope:
        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
    if scope.cancelled_caught:
        raise TimeoutError


def wait_readable(descriptor: int, what: str) -> None:
    """Until somebody has written into a terminal or a pipe, or has closed it."""
    wait_until(lambda: select.select([descriptor], [], [], STRIDE)[0], what=what)
