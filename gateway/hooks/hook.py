"""One subscription, and what is known of it."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from math import ceil
from time import monotonic
from typing import Any, Protocol, TypeAlias, get_args
from weakref import ref

from gateway.errors import HookError, describe_error
from gateway.events import OnError
from gateway.hooks.filters import Filter

Handler: TypeAlias = Callable[..., Any]

log = logging.getLogger("gateway.hooks")

SAMPLES = 256
REPEAT_INTERVAL = 60.0  # seconds for which the same error again is only counted


class CallCounter(Protocol):
    """What calls a hook and counts on its behalf."""

    runs: int
    fired: float | None


class HookHealth:
    """The facts of one hook's calls.

    To count and to time a call would cost as much as a fast interceptor does, so a plan (`Plan`) counts for all of its
    interceptors, and times them now and then: what is told here is gathered from the `plans` that the hook stands in.
    """

    __slots__ = ("_calls", "_durations", "_error_told", "_fired", "dropped", "error", "failures", "plans")

    def __init__(self) -> None:
        self.failures = 0
        self.dropped = 0
        self.error: BaseException | None = None
        self.plans: set[ref[CallCounter]] = set()
        self._calls = 0
        self._fired: float | None = None
        self._error_told = 0.0
        self._durations: deque[float] = deque(maxlen=SAMPLES)

    @property
    def calls(self) -> int:
        """How often the hook was called."""
        return self._calls + sum(plan.runs for plan in self._counting())

    @property
    def fired(self) -> float | None:
        """When it was called last, in seconds since 1970."""
        return max((at for at in (self._fired, *(plan.fired for plan in self._counting())) if at), default=None)

    def called(self, at: float) -> None:
        """It is called now."""
        self._calls += 1
        self._fired = at

    def uncount_call(self) -> None:
        """Its plan ran, and so counted a call, but this hook's turn did not come."""
        self._calls -= 1

    def keep(self, plan: ref[CallCounter], runs: int, fired: float | None) -> None:
        """This plan is gone; so often it had run."""
        self.plans.discard(plan)
        self._calls += runs
        self._fired = max(self._fired or 0, fired or 0) or None

    def _counting(self) -> list[CallCounter]:
        return [plan for plan in (reference() for reference in tuple(self.plans)) if plan is not None]

    def timed(self, seconds: float) -> None:
        """A call took this long."""
        self._durations.append(seconds)

    def failed(self, error: BaseException) -> bool:
        """A call failed; is that news? The same error again within a minute is not."""
        self.failures += 1
        is_news = repr(error) != repr(self.error) or monotonic() - self._error_told >= REPEAT_INTERVAL
        if is_news:
            self.error, self._error_told = error, monotonic()
        return is_news

    def percentile(self, percent: float) -> float | None:
        """How long calls take, in seconds, of those that were timed last; None when there was none yet."""
        durations = sorted(self._durations)
        return durations[max(0, ceil(len(durations) * percent / 100) - 1)] if durations else None


class MailboxProtocol(Protocol):
    """Where the events of an observer wait."""

    hook: "Hook"
    queue: deque[Any]
    is_idle: bool

    def overflow(self) -> None: ...
    def wake(self) -> None: ...
    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class Hook:
    """One subscription. `fn` is what was registered; `call` is that, within its own time limit.

    `key` is what it is called: as its function, unless one was given. `owner` is whose bag `event.own` is: hooks of one
    given key (those of a folder) share theirs, any other has its own. `number` counts the subscriptions of a scope.
    """

    fn: Handler
    names: tuple[str, ...]
    owner: Hashable = None
    order: float = 0
    matches: Filter | None = None
    on_error: OnError = "skip"
    timeout: float | None = None
    key: str = field(init=False)
    call: Handler = field(init=False, repr=False)
    mailbox: "MailboxProtocol | None" = field(init=False, default=None, repr=False)
    number: int = field(init=False, default=0, repr=False)
    health: HookHealth = field(init=False, default_factory=HookHealth, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise TypeError(f"a hook is something that can be called, not {self.fn!r}")
        if isinstance(self.order, bool) or not isinstance(self.order, int | float) or self.order != self.order:
            raise TypeError(f"order is a number, low first, not {self.order!r}")
        if self.on_error not in get_args(OnError):
            raise ValueError(f"on_error is {' or '.join(get_args(OnError))}, not {self.on_error!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout is a number of seconds above 0, not {self.timeout!r}")
        self.call = self.fn if self.timeout is None else _with_timeout(self.fn, self.timeout)
        self.key = _name_of(self.fn) if self.owner is None else str(self.owner)
        self.owner = self if self.owner is None else self.owner

    def __str__(self) -> str:
        return self.key

    @property
    def intercepts(self) -> bool:
        """Is it awaited, and may it change and stop things? Else it only observes."""
        return self.mailbox is None

    @property
    def queued(self) -> int:
        """How many events wait for this observer."""
        return len(self.mailbox.queue) if self.mailbox else 0

    @property
    def is_async(self) -> bool:
        """Does a call surely answer a coroutine? Of any other answer it is asked whether it can be awaited."""
        return iscoroutinefunction(self.call)

    def applies(self, name: str, fields: Mapping[str, Any]) -> bool:
        """Is the hook to be told of this event? Of one about itself (`hook:failed`) it never is."""
        if name.startswith("hook:") and fields.get("hook") == self.key:
            return False
        return self.matches is None or self.matches(fields)

    def failed(self, name: str, error: BaseException) -> None:
        """A call failed: count it, and say so unless it was said just now."""
        if self.health.failed(error):
            trace = None if isinstance(error, HookError) else error  # a process of its own has told where it was
            log.warning(
                "%s failed at %s: %s", self.key, name, describe_error(error), exc_info=trace, extra={"hook": self.key}
            )


def _name_of(fn: Handler) -> str:
    fn = getattr(fn, "func", fn)  # of a partial
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    return f"{named.__module__}.{named.__qualname__}"


def _with_timeout(fn: Handler, seconds: float) -> Handler:
    """The same function, cancelled when it takes longer; one that never awaits cannot be."""

    async def call(*args: Any) -> Any:
        try:
            async with asyncio.timeout(seconds) as limit:
                answer = fn(*args)
                return await answer if hasattr(answer, "__await__") else answer
        except TimeoutError:
            if limit.expired():
                raise TimeoutError(f"it took longer than {seconds:g} s") from None
            raise

    return call
