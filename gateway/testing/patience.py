"""The time limit of a test: seconds in which its processes could run, not those of the wall.

A machine that sleeps or swaps uses up nothing of a limit, and one that works for many programs uses it up as slowly as
it works for us: with ten that want to run on two cores, 60 s are five minutes.
"""

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from gateway.errors import GatewayError

T = TypeVar("T")

LONGEST = 60.0  # seconds for any wait
STRIDE = 0.1  # seconds: of a longer pause between two checks, the rest was not ours
POLL_PAUSE = 0.01
LOAD = Path("/proc/loadavg")


class Patience(msgspec.Struct, eq=False):
    """A limit for use in a loop: `while not done(): assert not patience.is_over()`, with a pause."""

    seconds: float = LONGEST
    spent: float = 0.0
    _looked: float = msgspec.field(default_factory=time.monotonic)

    def is_over(self) -> bool:
        """Return True once we had these seconds. Calls count: at most a stride passes between two of them."""
        if time.monotonic() - self._looked >= STRIDE:
            self._looked = time.monotonic()
            self.spent += STRIDE * calculate_share()
        return self.spent >= self.seconds


def calculate_share(load: Path = LOAD) -> float:
    """Return the share of time that a process which wants to run gets now: 1.0 while no process waits for a core."""
    if not load.exists():
        return 1.0
    runnable = int(load.read_text().split()[3].partition("/")[0])
    return min(1.0, (os.cpu_count() or 1) / max(1, runnable))


def wait_until(condition: Callable[[], T], seconds: float = LONGEST, what: str = "") -> T:
    """Wait for something to become true, and return it; `what` describes it.

    Raises:
        GatewayError: it did not, in time.
    """
    patience = Patience(seconds)
    while not (answer := condition()):
        if patience.is_over():
            raise GatewayError(f"not within {seconds:.0f} s: {what or condition}")
        time.sleep(POLL_PAUSE)
    return answer


def wait_for_end(process: "subprocess.Popen[str]", seconds: float = LONGEST) -> tuple[str, str]:
    """Return what a program printed and logged, once it has ended; kill it if that takes too long.

    Raises:
        TimeoutExpired: it did not end in time.
    """
    patience = Patience(seconds)
    try:
        while not patience.is_over():
            with suppress(subprocess.TimeoutExpired):  # its output so far is kept
                return process.communicate(timeout=STRIDE)
        raise subprocess.TimeoutExpired(process.args, seconds)
    except BaseException:
        process.kill()
        raise
