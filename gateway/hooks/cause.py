"""What an event comes from: its id, and the event during whose handling it came about.

A hook may cause events, for which hooks are called again, also by giving the agent something to do: its message and the
replies to it carry the cause on. Such a chain comes to its end at a depth of eight.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from time import time, time_ns
from typing import Any, TypeAlias

Cause: TypeAlias = tuple[str, int]  # the id of the event that is being handled, and its depth: how many came before it

MAX_DEPTH = 8

# Unique over all runs of the program, and in order: the clock's nanoseconds at its start, and one more for each event.
_IDS = map(hex, count(time_ns()))

CAUSE: ContextVar[Cause | None] = ContextVar("gateway_cause", default=None)


@contextmanager
def use_cause(cause: Cause | None) -> Iterator[None]:
    """What happens in this block was caused by that event; for those who act for a hook that runs elsewhere."""
    token = CAUSE.set(cause)
    try:
        yield
    finally:
        CAUSE.reset(token)


def stamp_event(fields: dict[str, Any], cause: Cause | None, at: float | None = None) -> None:
    """Give an event the fields that every event has, unless it has them."""
    if "id" not in fields:
        fields["id"] = next(_IDS)
    if "time" not in fields:
        fields["time"] = time() if at is None else at
    if "cause" not in fields:
        fields["cause"] = cause[0] if cause else None
    if "resumed" not in fields:
        fields["resumed"] = False
