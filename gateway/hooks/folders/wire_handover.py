"""The wire that a hook is reached by now, and those that are being left: how one takes over from another.

The new one stands ready before the old one is left. The old one finishes what it has begun; observers wait for that,
so that the new one's first event comes after the old one's last. Interceptors do not wait: a turn waits for them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from gateway.hooks.wires.wire import Wire


class WireHandover:
    """Counts who is busy on which wire, and holds those that have something left to hand over."""

    def __init__(self) -> None:
        self.wire: Wire | None = None
        self._busy: dict[Wire, int] = {}
        self._held: set[Wire] = set()
        self._eased = anyio.Event()

    @contextmanager
    def using(self, wire: Wire) -> Iterator[None]:
        """A call is under way on it."""
        self._busy[wire] = self._busy.get(wire, 0) + 1
        try:
            yield
        finally:
            self._busy[wire] -= 1
            if not self._busy[wire]:
                del self._busy[wire]
                self._ease()

    @contextmanager
    def held(self, wire: Wire) -> Iterator[None]:
        """Another took over from it, and it is not finished yet."""
        self._held.add(wire)
        try:
            yield
        finally:
            self._held.discard(wire)
            self._ease()

    def is_alone(self, wire: Wire) -> bool:
        """Whether nothing is under way on any other wire."""
        return all(other is wire for other in (*self._busy, *self._held))

    async def wait_for_change(self) -> None:
        """Until something is not under way any more."""
        await self._eased.wait()

    async def finished(self, wire: Wire) -> None:
        """Until no call is under way on it."""
        while wire in self._busy:
            await self._eased.wait()

    def _ease(self) -> None:
        self._eased.set()
        self._eased = anyio.Event()
