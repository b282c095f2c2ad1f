"""One thing after the other where order matters (in a chat), and side by side where it does not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class KeyedLock:
    """Whoever asks first for a key is first; other keys do not wait. A key that nobody waits for is forgotten."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[anyio.Lock, int]] = {}

    def __len__(self) -> int:
        return len(self._locks)

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Inside, nobody else is inside with this key."""
        lock, waiting = self._locks.get(key, (None, 0))
        lock = lock or anyio.Lock()
        self._locks[key] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            _, waiting = self._locks.pop(key)
            if waiting > 1:
                self._locks[key] = (lock, waiting - 1)
