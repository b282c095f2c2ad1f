"""One hook of a registry: a function, the events that call it, and the count of its failures."""

import asyncio
import logging
from collections.abc import Callable, Container, Hashable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, ClassVar, NamedTuple, TypeAlias, get_args

from gateway.errors import HookError, describe_error
from gateway.events import OnError
from gateway.hooks.filters import Filter

Handler: TypeAlias = Callable[..., Any]
# Gets a remark about a part of a hook's answer that has no effect; the text continues the hook's name.
Remark: TypeAlias = Callable[[str], object]

log = logging.getLogger("gateway.hooks")

REPEAT_INTERVAL = 60.0  # seconds in which a repeated error is only counted
_ON_ERRORS = get_args(OnError)


class RepeatFilter:
    """A filter that reports a failure once a minute while the failure stays the same."""

    __slots__ = ("_at", "_text")

    def __init__(self) -> None:
        self._text: str | None = None
        self._at = 0.0

    def is_news(self, text: str, now: float) -> bool:
        """Return True if this text must be reported; False if the same text was reported just before `now`."""
        if text == self._text and now - self._at < REPEAT_INTERVAL:
            return False
        self._text, self._at = text, now
        return True


class HookTraits(NamedTuple):
    """The traits of a hook beside its registration.

    `guards`: events that a failure of the hook denies, whatever `on_error` says. `rewords`: the hook may change text
    for people. `left_out`: fields that the hook does not read. `remedy`: the advice when a failure denies something.
    `note` gets remarks about the hook's answers; without `note`, the remarks go to the log.
    """

    guards: Container[str] = ()
    rewords: bool = True
    left_out: Container[str] = ()
    remedy: str = ""
    note: Remark | None = None


PLAIN = HookTraits()


@dataclass(slots=True, eq=False)
class Hook:
    """A function that events call. `fn` is the registered function; `call` adds the hook's own time limit.

    `key` is the name of the hook: the given key, or the name of its function. `owner` selects the bag of `event.own`:
    hooks with the same given key (the hooks of one folder) share a bag, any other hook has its own bag. `number` is the
    order of registration in a scope. `traits` are the further facts from the hook's folder. `failures` counts failed
    calls, `dropped` the events that an observer missed because the observer was too slow.
    """

    # the event waits for the hook, which may change and stop things; otherwise the hook only observes
    intercepts: ClassVar[bool] = True
    fn: Handler
    names: tuple[str, ...]
    owner: Hashable = None
    order: float = 0
    matches: Filter | None = None
    on_error: OnError = "skip"
    timeout: float | None = None
    key: str = field(init=False)
    call: Handler = field(init=False, repr=False)
    number: int = field(init=False, default=0, repr=False)
    failures: int = field(init=False, default=0, repr=False)
    dropped: int = field(init=False, default=0, repr=False)
    traits: HookTraits = field(init=False, default=PLAIN, repr=False)
    _repeats: RepeatFilter = field(init=False, default_factory=RepeatFilter, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise TypeError(f"a hook is something that can be called, not {self.fn!r}")
        if isinstance(self.order, bool) or not isinstance(self.order, int | float) or self.order != self.order:
            raise TypeError(f"order is a number, low first, not {self.order!r}")
        if self.on_error not in _ON_ERRORS:
            raise ValueError(f"on_error is {' or '.join(_ON_ERRORS)}, not {self.on_error!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout is a number of seconds above 0, not {self.timeout!r}")
        self.call = self.fn if self.timeout is None else _with_timeout(self.fn, self.timeout)
        self.key = _name_of(self.fn) if self.owner is None else str(self.owner)
        self.owner = self if self.owner is None else self.owner

    def __str__(self) -> str:
        return self.key

    @property
    def queued(self) -> int:
        """Return the number of events that wait for the hook; 0 for an interceptor."""
        return 0

    def applies(self, name: str, fields: Mapping[str, Any]) -> bool:
        """Return True if this event calls the hook. An event about the hook (`hook:failed`) never calls it."""
        if name.startswith("hook:") and fields.get("hook") == self.key:
            return False
        return self.matches is None or self.matches(fields)

    def remark(self, text: str) -> None:
        """Report a part of the hook's answer that has no effect."""
        if self.traits.note is None:
            log.warning("%s %s", self.key, text, extra={"hook": self.key})
        else:
            self.traits.note(text)

    def failed(self, name: str, error: BaseException) -> None:
        """Count a failed call, and log it unless the same failure was just logged."""
        self.failures += 1
        if self._repeats.is_news(repr(error), monotonic()):
            # an error of the hook's own process brings its traceback
            trace = None if isinstance(error, HookError) else error
            log.warning(
                "%s failed at %s: %s", self.key, name, describe_error(error), exc_info=trace, extra={"hook": self.key}
            )


def _name_of(fn: Handler) -> str:
    fn = getattr(fn, "func", fn)  # if it is a partial
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    return f"{named.__module__}.{named.__qualname__}"


def _with_timeout(fn: Handler, seconds: float) -> Handler:
    """Return the function with a time limit. A function that never awaits cannot be cancelled."""

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
