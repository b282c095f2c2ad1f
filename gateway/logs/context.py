"""Where a line was written: the session, the turn and the hook that the code at work belongs to.

It follows tasks and calls by itself, so that a library's own lines carry it too.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

CONTEXT_KEYS = ("session", "turn", "hook", "platform")

_EMPTY_CONTEXT: Mapping[str, str] = MappingProxyType({})
_context: ContextVar[Mapping[str, str]] = ContextVar("gateway_log_context", default=_EMPTY_CONTEXT)


@contextmanager
def bind_context(*, session: str = "", turn: str = "", hook: str = "", platform: str = "") -> Iterator[None]:
    """Lines that are written inside carry these; what is empty stays as it was outside."""
    given = {"session": session, "turn": turn, "hook": hook, "platform": platform}
    mark = _context.set({**_context.get(), **{key: value for key, value in given.items() if value}})
    try:
        yield
    finally:
        _context.reset(mark)


def get_context() -> Mapping[str, str]:
    return _context.get()
