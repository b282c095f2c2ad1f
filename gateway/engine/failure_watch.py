"""An end to all waiting for the journal, once it can take nothing any more."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from gateway.engine.interface import Engine
from gateway.errors import EngineError

LOOK_SECONDS = 1.0
NOT_NOW = "this cannot be answered now: {}"


class FailureWatch:
    """One look a second, for all who wait."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: set[anyio.CancelScope] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._why = ""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Cancel what runs inside when the journal fails.

        Raises:
            EngineError: it takes nothing now, or does not say.
        """
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            if self._timer is None:
                self._wait()
            try:
                yield
            finally:
                self._waiting.discard(scope)
        if scope.cancelled_caught:
            raise EngineError(NOT_NOW.format(self._why))

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._timer = None
        self._why = self._engine.failure()
        if not self._why and self._waiting:
            self._wait()
        for scope in self._waiting if self._why else ():
            scope.cancel()
