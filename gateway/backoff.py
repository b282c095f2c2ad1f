"""Pauses: before a retry, longer each time, and between two looks."""

import random
import time
from math import log2

import msgspec


class Backoff(msgspec.Struct, frozen=True):
    """Pauses that double from `first` to `longest` seconds.

    Each is stretched by a random factor between `low` and `high`, so that many who failed together do not come back
    together.
    """

    first: float
    longest: float
    low: float = 1.0
    high: float = 1.0

    def pause_after(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row; 0 after none."""
        if failures <= 0:
            return 0.0
        # A float cannot hold 2**1024, which a thing that fails for a day comes to: the exponent has its limit too.
        doublings = min(failures - 1, max(0.0, log2(self.longest / self.first)))
        pause: float = min(self.longest, self.first * 2.0**doublings)
        return pause * (random.uniform(self.low, self.high) if self.high > self.low else self.low)  # noqa: S311 - no secret


class Attempts(msgspec.Struct, eq=False):
    """The failures in a row of one thing, and the pause that follows from them.

    After `steady` seconds without a failure the count restarts.
    """

    _backoff: Backoff
    steady: float = 0.0
    failures: int = 0

    def pause(self, lived: float = 0.0) -> float:
        """Count a failure after `lived` seconds of work. Returns the seconds to wait now."""
        self.failures = 1 if self.steady and lived > self.steady else self.failures + 1
        return self._backoff.pause_after(self.failures)

    def reset(self) -> None:
        """Forget the failures, since it works."""
        self.failures = 0


def find_pause(seconds: float) -> float:
    """Return the seconds until the clock is at a multiple of so many: so equal loops wake the processor together."""
    return seconds - time.monotonic() % seconds
