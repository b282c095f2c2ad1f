"""Time and chance of a simulation. `install` hands them to this process; the gateway is imported after that.

A loop never waits: a wait moves the clock. So days pass in seconds, and what happens depends on the seed alone.
"""

import asyncio
import os
import random
import selectors
import threading
import time
from asyncio import events
from collections.abc import Coroutine
from typing import Any

BEGUN = 1_900_000_000.0
TICK = 1e-6  # seconds that each step takes, at least
LONGEST_REST = 1.0  # of a loop in which nothing waits for a time


class World:
    """The steady clock counts from 0; the wall clock is `ahead` of it."""

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> None:
        self.steady, self.ahead, self.chance = 0.0, BEGUN, random.Random(seed)
        random.seed(seed)

    def wall(self) -> float:
        return self.steady + self.ahead

    def read_steady(self, _clock: int = 0) -> float:
        return self.steady

    def make_bytes(self, count: int) -> bytes:
        return self.chance.randbytes(count)


WORLD = World()


def install() -> None:
    """Put the world in the place of clocks and chance."""
    time.time = WORLD.wall
    time.monotonic = time.perf_counter = WORLD.read_steady
    time.clock_gettime = WORLD.read_steady
    os.urandom = random._urandom = WORLD.make_bytes  # type: ignore[attr-defined]


class NoWait(selectors.SelectSelector):
    """Moves the clock instead of waiting."""

    def select(self, timeout: float | None = None) -> list[Any]:
        WORLD.steady += max(TICK, LONGEST_REST if timeout is None else timeout)
        return []


class Life:
    """A process that is stepped by hand, and may be dropped at any step."""

    def __init__(self) -> None:
        self.loop = asyncio.SelectorEventLoop(NoWait())
        self.loop.time = WORLD.read_steady  # type: ignore[method-assign]
        self.loop.set_exception_handler(lambda _loop, _context: None)

    def start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        self.loop._thread_id = threading.get_ident()  # type: ignore[attr-defined]
        events._set_running_loop(self.loop)
        return self.loop.create_task(work)

    def step(self) -> None:
        self.loop._run_once()  # type: ignore[attr-defined]

    def end(self) -> None:
        """Close the descriptors, and nothing else: what was to run next must stay, so that no `finally` runs."""
        self.loop._close_self_pipe()  # type: ignore[attr-defined]
        self.loop._selector.close()  # type: ignore[attr-defined]
