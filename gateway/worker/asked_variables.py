"""The environment variables that a hook looks up in vain; no analysis of its source finds all of them."""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress

MOST_NAMES = 1_000


class AskedVariables(dict[bytes, bytes]):
    """The data of `os.environ`. `tell` gets each name that the hook looks up in vain, once, on the loop."""

    def __init__(
        self, given: Mapping[bytes, bytes], loop: asyncio.AbstractEventLoop, tell: Callable[[list[str]], object]
    ) -> None:
        super().__init__(given)
        self._loop = loop
        self._tell = tell
        self._known: set[bytes] = set()
        self._new: list[str] = []
        self._owner = os.getpid()

    def __missing__(self, name: bytes) -> bytes:
        is_news = name not in self._known and len(self._known) < MOST_NAMES
        if is_news and os.getpid() == self._owner:  # a copy that the hook forked has no wire
            self._known.add(name)
            self._new.append(os.fsdecode(name))
            if len(self._new) == 1:
                with suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._flush)
        raise KeyError(name)

    def _flush(self) -> None:
        names, self._new = self._new, []
        self._tell(names)


def watch_environment(loop: asyncio.AbstractEventLoop, tell: Callable[[list[str]], object]) -> None:
    """Pass the names of missing variables to `tell`."""
    data = AskedVariables(vars(os.environ)["_data"], loop, tell)  # noqa: TID251 - the hook's own
    for environ in (os.environ, os.environb):  # noqa: TID251
        vars(environ)["_data"] = data
