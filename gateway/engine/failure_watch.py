"""Cancel all blocks that wait for the journal once the journal has failed for good."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import msgspec

from gateway.engine.interface import Engine
from gateway.errors import EngineError

LOOK_SECONDS = 1.0
NOT_NOW = "this cannot be answered now: {}"


class FailureWatch(msgspec.Struct, eq=False):
    """A check of the journal once a second, for all callers that wait inside `watching`."""

    _engine: Engine
    _waiting: set[anyio.CancelScope] = set()
    _timer: asyncio.TimerHandle | None = None
    _why: str = ""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Cancel the block inside when the journal fails.

        Raises:
            EngineError: the journal takes no appends any more.
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
