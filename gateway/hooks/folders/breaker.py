"""A circuit breaker: after so many failures in a row a hook is left alone for a while, then tried with one call.

closed -> (failures in a row reach the threshold) -> open -> (the pause is over) -> half-open: one probe passes;
its success closes the breaker, its failure opens it again, and each time in a row the pause is twice as long.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.backoff import Backoff
from gateway.hooks.folders.stats import BreakerState


@dataclass(slots=True)
class Breaker:
    """Ask `admits()` before a call and report every admitted call with `succeeded()`, `failed()` or `left()`."""

    clock: Callable[[], float]
    threshold: int = 5
    pause: float = 30.0
    longest: float = 600.0
    failures: int = 0
    trips: int = 0
    _until: float | None = field(default=None, repr=False)
    _probing: bool = field(default=False, repr=False)

    @property
    def state(self) -> BreakerState:
        if self._until is None:
            return "closed"
        return "open" if self.clock() < self._until else "half-open"

    @property
    def remaining(self) -> float:
        """Seconds until the next probe may pass."""
        return max(0.0, self._until - self.clock()) if self._until is not None else 0.0

    def admits(self) -> bool:
        """Whether a call may go now; in the half-open state it is then the probe."""
        match self.state:
            case "closed":
                return True
            case "half-open" if not self._probing:
                self._probing = True
                return True
        return False

    def succeeded(self) -> bool:
        """True when this closed an open breaker."""
        closed = self._until is not None
        self.reset()
        return closed

    def failed(self) -> bool:
        """True when this opened the breaker."""
        self.failures += 1
        if self._until is None and self.failures < self.threshold:
            return False
        if self._until is not None and not self._probing:
            return False  # a call from before the trip: it tells nothing new
        self._probing = False
        self._until = self.clock() + Backoff(self.pause, self.longest).pause_after(self.trips + 1)
        self.trips += 1
        return True

    def left(self) -> None:
        """The call was given up before it could succeed or fail: the next one may be the probe."""
        self._probing = False

    def reset(self) -> None:
        self.failures = self.trips = 0
        self._until, self._probing = None, False
