"""A histogram of durations, counted by bounds that are the same for all measurements.

Counts can be added: over hooks of one name, and by collectors over gateways. Quantiles cannot. The bounds reach from
the time of a hook's call to that of a turn.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Self

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Histogram:
    """Counts of durations. `counts` are those up to each bound and above the one before, and last those above all."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS) + 1)
        self.total = 0.0

    def observe(self, *durations: float) -> None:
        """Count durations; a bound includes durations that equal it."""
        for seconds in durations:
            self.counts[bisect_left(SECONDS, seconds)] += 1
            self.total += seconds

    @property
    def count(self) -> int:
        """The number of all durations."""
        return sum(self.counts)

    @classmethod
    def join(cls, parts: Iterable["Histogram"]) -> Self:
        """Add up several histograms."""
        joined = cls()
        for part in parts:
            joined.counts = [one + more for one, more in zip(joined.counts, part.counts, strict=True)]
            joined.total += part.total
        return joined
