"""The lock on a home, which one gateway serves. The file names the process, and the reason why its start waits."""

import fcntl
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio

from gateway.errors import GatewayError, HomeBusy

POLL_PAUSE = 0.1

log = logging.getLogger(__name__)


@asynccontextmanager
async def lock_home(path: Path, patience: float) -> AsyncIterator[None]:
    """Hold the home inside the block. If another gateway holds the home, log that at once, and wait for its stop.

    Raises:
        HomeBusy: another process still held the home after `patience` seconds.
    """
    descriptor = _open_lock(path)
    try:
        if not _try_lock(descriptor):
            log.warning(
                "another gateway serves this home: %s; its end is waited for, for %.0f s",
                _read_first(descriptor),
                patience,
            )
        with anyio.move_on_after(patience):
            while not _try_lock(descriptor):  # noqa: ASYNC110 - the kernel does not announce a free lock
                await anyio.sleep(POLL_PAUSE)
        _take_lock(
            descriptor,
            path,
            "another gateway",
            "stop that one (hermes-gateway status shows it), or give this one a home of its own with HERMES_HOME",
        )
        yield
    finally:
        os.close(descriptor)


@contextmanager
def reserve_home(path: Path, patience: float) -> Iterator[None]:
    """Hold the home without an event loop, for a command during which no gateway may run.

    Raises:
        HomeBusy: a gateway runs.
    """
    descriptor, limit = _open_lock(path), time.monotonic() + patience
    try:
        while not _try_lock(descriptor) and time.monotonic() < limit:
            time.sleep(POLL_PAUSE)
        _take_lock(descriptor, path, "a gateway", "stop it first: hermes-gateway stop")
        yield
    finally:
        os.close(descriptor)


def _open_lock(path: Path) -> int:
    """Open the lock file. Raises GatewayError with a remedy if the home is unreadable, or too many files are open."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        remedy = f"make {path.parent} a folder that its user may read and write"
        raise GatewayError(f"{path} cannot be opened: {error.strerror}\n{remedy}") from None


def _take_lock(descriptor: int, path: Path, holder: str, remedy: str) -> None:
    if not _try_lock(descriptor):
        raise HomeBusy(f"{holder} serves this home: {path}: held by {_read_first(descriptor)}\n{remedy}")
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"pid {os.getpid()} since {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode(), 0)


def write_waiting(path: Path, why: str) -> None:
    """Write what the gateway of this home waits for before it serves; `why` is empty if the wait is over."""
    with path.open("r+b") as file:
        file.readline()
        file.seek(file.tell())  # from reading to writing
        file.write(f"{why}\n".encode() if why else b"")
        file.truncate()


def read_waiting(path: Path) -> str:
    """Return the reason why the gateway waits; "" if no process holds the home."""
    return _read_held(path).partition("\n")[2]


def lock_holder_of(path: Path) -> str:
    """Describe the process that holds the home; empty if no process does."""
    return _read_held(path).partition("\n")[0]


def _read_held(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return "" if _try_lock(descriptor, fcntl.LOCK_SH) else _read_holder(descriptor)
    finally:
        os.close(descriptor)


def _read_holder(descriptor: int) -> str:
    return os.pread(descriptor, 1000, 0).decode(errors="replace").strip() or "an unknown process"


def _read_first(descriptor: int) -> str:
    """Read the first line, which names the process."""
    return _read_holder(descriptor).partition("\n")[0]


def _try_lock(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
