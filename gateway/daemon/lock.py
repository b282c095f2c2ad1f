"""One gateway a home: an advisory lock that the kernel drops with its process, so that nothing can be stale."""

import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from gateway.errors import HomeBusy

POLL_PAUSE = 0.1


@asynccontextmanager
async def lock_home(path: Path, patience: float) -> AsyncIterator[None]:
    """Hold the home while inside; the gateway before us may still be draining, so wait for it.

    Raises:
        HomeBusy: somebody else still held the home after `patience` seconds.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with anyio.move_on_after(patience):
            while not _try_lock(descriptor):  # noqa: ASYNC110 - the kernel tells nobody that a lock came free
                await anyio.sleep(POLL_PAUSE)
        if not _try_lock(descriptor):
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "an unknown process"
            raise HomeBusy(
                f"another gateway serves this home: {path}: held by {holder}\n"
                "stop that one (hermes-gateway status shows it), or give this one a home of its own with HERMES_HOME"
            )
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"pid {os.getpid()} since {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
