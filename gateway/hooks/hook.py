"""One subscription, and what is known of it."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from gateway.events import OnError
from gateway.hooks.filters import Filter

if TYPE_CHECKING:
    from gateway.hooks.mailbox import Mailbox

Handler: TypeAlias = Callable[..., Any]

log = logging.getLogger("gateway.hooks")

SLOW = 0.001  # seconds
SAMPLES = 256
SILENCE = 60.0  # seconds for which the same error again is only counted


class Health:
    """The facts of one hook's calls, kept while they are made.

    To time a call costs as much as a fast hook does. So after a slow call the next one is timed too, after a fast one
    only the sixteenth: `credit` is how many may go by untimed, and how many there were follows from it.
    """

    __slots__ = ("_durations", "_granted", "_told", "credit", "dropped", "error", "failures", "fired")

    def __init__(self) -> None:
        self.credit = 0
        self.failures = 0
        self.dropped = 0
        self.fired: float | None = None
        self.error: BaseException | None = None
        self._told = 0.0
        self._granted = 0
        self._durations: deque[float] = deque(maxlen=SAMPLES)

    @property
    def calls(self) -> int:
        """How often the hook was called."""
        return self._granted - self.credit

    def timed(self, seconds: float) -> None:
        """A call took this long."""
        self._durations.append(seconds)
        grant = 1 if seconds >= SLOW or len(self._durations) < SAMPLES // 4 else 16
        self.credit += grant
        self._granted += grant

    def failed(self, error: BaseException) -> bool:
        """A call failed; is that news? The same error again within a minute is not."""
        self.failures += 1
        is_news = repr(error) != repr(self.error) or monotonic() - self._told >= SILENCE
        if is_news:
            self.error, self._told = error, monotonic()
        return is_news

    def percentile(self, percent: float) -> float | None:
        """How long calls take, in seconds, of those that were timed last; None when there was none yet."""
        durations = sorted(self._durations)
        return durations[max(0, ceil(len(durations) * percent / 100) - 1)] if durations else None


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
    mailbox: "Mailbox | None" = field(init=False, default=None, repr=False)
    number: int = field(init=False, default=0, repr=False)
    health: Health = field(init=False, default_factory=Health, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise TypeError(f"a hook is something that can be called, not {self.fn!r}")
        if isinstance(self.order, bool) or not isinstance(self.order, int | float) or self.order != self.order:
            raise TypeError(f"order is a number, low first, not {self.order!r}")
        if self.on_error not in get_args(OnError):
            raise ValueError(f"on_error is {' or '.join(get_args(OnError))}, not {self.on_error!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout is a number of seconds above 0, not {self.timeout!r}")
        self.call = self.fn if self.timeout is None else _limited(self.fn, self.timeout)
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

    def applies(self, name: str, fields: Mapping[str, Any]) -> bool:
        """Is the hook to be told of this event? Of one about itself (`hook:failed`) it never is."""
        if name.startswith("hook:") and fields.get("hook") == self.key:
            return False
        return self.matches is None or self.matches(fields)

    def failed(self, name: str, error: BaseException) -> None:
        """A call failed: count it, and say so unless it was said just now."""
        if self.health.failed(error):
            log.warning("%s failed at %s: %s", self.key, name, described(error), exc_info=error)


def _name_of(fn: Handler) -> str:
    fn = getattr(fn, "func", fn)  # of a partial
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    return f"{named.__module__}.{named.__qualname__}"


def described(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _limited(fn: Handler, seconds: float) -> Handler:
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
