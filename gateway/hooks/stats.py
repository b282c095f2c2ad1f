"""The statistics of one hook, for `hooks list`: the number, times and durations of its calls, and its errors.

For a while, the breaker stops the calls of a hook that fails too often.
"""

import time
from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, Literal, NamedTuple

import msgspec

from gateway.backoff import Backoff
from gateway.histogram import Histogram
from gateway.hooks.hook import RepeatFilter
from gateway.hooks.wires.wire import HookFailed

SAMPLES = 256
MAX_TRACES = 20
MAX_GIVEN = 5  # calls whose events are kept for inspection
LONG_BEHIND = 60.0  # seconds

# registered: known, starts at its first event · starting · loaded · waiting: it ended and will be restarted · tripped:
# not called for a while · broken: cannot be read or started · missing: a requirement is not met
# · pending: not trusted yet · disabled · refused: not safe to use
# · without effect: it runs, and only changes or registers things that do not exist here
HookState = Literal[
    "registered",
    "starting",
    "loaded",
    "waiting",
    "tripped",
    "broken",
    "missing",
    "pending",
    "disabled",
    "refused",
    "without effect",
]
BreakerState = Literal["closed", "open", "half-open"]
# A hook in these states cannot be called; a call of a `missing` hook finds that out itself.
CLOSED_STATES: frozenset[HookState] = frozenset({"disabled", "refused", "pending", "broken"})
NEEDS_ATTENTION = frozenset({"waiting", "tripped", "broken", "missing", "pending", "refused", "without effect"})


class CallTrace(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call: the wall-clock time, the event, its duration in seconds, and its outcome."""

    at: float
    event: str
    seconds: float
    outcome: str = "ok"
    error: str = ""


class CallEvent(NamedTuple):
    """The event of a call, and the time of the call's end, as in its trace."""

    at: float
    event: str
    fields: Mapping[str, Any]


class HookCall(NamedTuple):
    """A finished call, for watchers of all calls."""

    hook: str
    event: str
    fields: Mapping[str, Any]
    trace: CallTrace


class LastError(msgspec.Struct, frozen=True):
    at: float
    event: str
    message: str
    traceback: str = ""


class OwedFacts(NamedTuple):
    """The number of a hook's pending events, and the age of the oldest in seconds."""

    owed: int = 0
    behind: float = 0.0


NOTHING_OWED = OwedFacts()


class HookStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `hooks list` and `hooks info` show of a hook. `owed` and `behind` are as in `OwedFacts`."""

    name: str  # the folder's
    label: str
    description: str
    version: str
    origin: str
    path: str
    state: HookState
    reason: str = ""
    wire: str = ""
    events: tuple[str, ...] = ()
    intercepts: tuple[str, ...] = ()
    order: float = 0
    on_error: str = "skip"
    delivery: str = "memory"
    schedule: str = ""
    hermes: bool = False
    written_for: str = ""  # the system for which the hook was written, and the reason for this assumption
    found: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    offers: tuple[str, ...] = ()  # a plugin's commands, tools and skills
    digest: str = ""
    loaded_at: float = 0.0
    restarts: int = 0
    last_fired: float = 0.0
    calls: int = 0
    failures: int = 0
    skipped: int = 0
    queued: int = 0
    owed: int = 0
    behind: float = 0.0
    dropped: int = 0
    dead: int = 0
    p50: float | None = None
    p95: float | None = None
    breaker: BreakerState = "closed"
    breaker_opens_in: float = 0.0
    last_error: LastError | None = None
    undecided: str = ""  # the decisions that the hook failed to make, until a person has seen them
    traces: tuple[CallTrace, ...] = ()
    pid: int = 0
    memory: int = 0
    hangs: str = ""
    restricted: str = ""  # why the hook is restricted to the following; "" if it is not restricted
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    net: str = ""
    unheld: tuple[str, ...] = ()  # the restrictions that this kernel cannot enforce

    @property
    def is_behind(self) -> bool:
        """Return True if the oldest pending event is so old that a person should look at the hook."""
        return self.behind >= LONG_BEHIND

    @property
    def needs_attention(self) -> bool:
        has_said = (self.state == "loaded" and bool(self.reason)) or bool(self.undecided)
        return self.state in NEEDS_ATTENTION or (has_said and self.state != "disabled")


class HookInfo(HookStatus, frozen=True, kw_only=True):
    """The additional facts of `hooks info`: the name of the hook's store, and the events of its last calls."""

    stored_as: str = ""
    given: tuple[CallEvent, ...] = ()


class HookStats(msgspec.Struct, eq=False):
    """The statistics of one hook's calls."""

    _clean: Callable[[str], str]
    histogram: Histogram = msgspec.field(default_factory=Histogram)  # of all calls
    _durations: list[float] = []  # of the last calls, unordered; an empty deque would take 0.8 kB
    _repeats: RepeatFilter = msgspec.field(default_factory=RepeatFilter)
    traces: tuple[CallTrace, ...] = ()
    given: tuple[CallEvent, ...] = ()
    calls: int = 0
    failures: int = 0
    skipped: int = 0
    last_fired: float = 0.0
    last_error: LastError | None = None

    def answered(self, outcome: str, *calls: tuple[str, float]) -> None:
        """Count calls with this outcome, each with its event and its seconds."""
        self._called(*[seconds for _, seconds in calls])
        traces = [CallTrace(self.last_fired, event, seconds, outcome) for event, seconds in calls[-MAX_TRACES:]]
        self.traces = (*self.traces, *traces)[-MAX_TRACES:]

    def failed(self, event: str, seconds: float, error: Exception) -> bool:
        """Count a failed call. Return True unless the same failure was counted within a minute."""
        self._called(seconds)
        self.failures += 1
        message = self._clean(str(error)) or type(error).__name__
        kind, traceback = (error.kind, error.traceback) if isinstance(error, HookFailed) else ("raised", "")
        self.last_error = LastError(self.last_fired, event, message, self._clean(traceback))
        trace = CallTrace(self.last_fired, event, seconds, kind, message[:500])
        self.traces = (*self.traces, trace)[-MAX_TRACES:]
        return self._repeats.is_news(message, self.last_fired)

    def _called(self, *durations: float) -> None:
        self.last_fired = time.time()
        for seconds in durations:
            self.calls += 1
            place = self.calls % SAMPLES
            self._durations[place : place + 1] = [seconds]
        self.histogram.observe(*durations)

    def percentile(self, percent: float) -> float:
        """Return a percentile of the last calls, in seconds."""
        durations = sorted(self._durations)
        return durations[max(0, ceil(len(durations) * percent / 100) - 1)]


class MissedDecisions(msgspec.Struct, frozen=True):
    """The number of decisions that a hook failed to make, and the reason and the time of the last failure."""

    count: int = 0
    last: str = ""
    at: float = 0.0


class DecisionFailures:
    """The decisions that a hook failed to make, until a person has seen them; `keep` stores their list for restarts."""

    def __init__(
        self,
        keep: Callable[[MissedDecisions], None],
        missed: MissedDecisions | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keep = keep
        self._missed = missed or MissedDecisions()
        self._clock = clock

    def add(self, what: str) -> None:
        self._put(MissedDecisions(self._missed.count + 1, what, self._clock()))

    def forget(self) -> None:
        if self._missed.count:
            self._put(MissedDecisions())

    def _put(self, missed: MissedDecisions) -> None:
        self._missed = missed
        self._keep(missed)

    def describe(self, called: str) -> str:
        """Describe the number of failures, and the time and the reason of the last failure; "" without failures.

        `called` is the hook's name in commands.
        """
        missed = self._missed
        if not missed.count:
            return ""
        times = "once" if missed.count == 1 else f"{missed.count} times"
        at = time.strftime("%a %H:%M", time.localtime(missed.at))
        seen = f"when you have seen it: hermes-gateway hooks reset {called}"
        return f"did not decide {times}, last {at}: {missed.last}; {seen}"


class Breaker(msgspec.Struct):
    """A circuit breaker: after several failures in a row, it stops the calls of a hook, and later lets a probe through.

    closed -> (failures in a row reach the threshold) -> open -> (the pause is over) -> half-open: the breaker lets one
    probe call through. If the probe succeeds, the breaker closes. If the probe fails, the breaker opens again, for
    twice as long.

    Ask `admits()` before a call and report every admitted call with `succeeded()`, `failed()` or `left()`.
    """

    clock: Callable[[], float]
    threshold: int = 5
    pause: float = 30.0
    longest: float = 600.0
    failures: int = 0
    trips: int = 0
    _until: float | None = None
    _probing: bool = False

    @property
    def state(self) -> BreakerState:
        if self._until is None:
            return "closed"
        return "open" if self.clock() < self._until else "half-open"

    @property
    def remaining(self) -> float:
        """Return the seconds until the next probe may pass."""
        return max(0.0, self._until - self.clock()) if self._until is not None else 0.0

    def admits(self) -> bool:
        """Return True if a call may pass now; in the half-open state, this call is the probe."""
        match self.state:
            case "closed":
                return True
            case "half-open" if not self._probing:
                self._probing = True
                return True
        return False

    def succeeded(self) -> bool:
        """Count a success; return True if the success closed an open breaker."""
        closed = self._until is not None
        self.reset()
        return closed

    def failed(self) -> bool:
        """Count a failure; return True if the failure opened the breaker."""
        self.failures += 1
        if self._until is None and self.failures < self.threshold:
            return False
        if self._until is not None and not self._probing:
            return False  # a call from before the trip says nothing new
        self._probing = False
        self._until = self.clock() + Backoff(self.pause, self.longest).pause_after(self.trips + 1)
        self.trips += 1
        return True

    def left(self) -> None:
        """Note a call that was cancelled before its outcome: the next call may be the probe."""
        self._probing = False

    def reset(self) -> None:
        self.failures = self.trips = 0
        self._until, self._probing = None, False


def describe_outcome(answer: Any) -> str:
    """Return the name of an interceptor's answer in a trace."""
    if answer is None:
        return "ok"
    if isinstance(answer, dict) and "decision" in answer:
        return str(answer["decision"])[:20]
    return "changed" if isinstance(answer, dict) else type(answer).__name__.lower()
