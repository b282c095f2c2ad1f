"""The caller on the control socket: the process at the other end, and its ancestors.

The kernel notes which process connected, and keeps that note whatever becomes of the process. Its parents are in /proc;
an orphaned process gets another parent, so a walk that breaks off begins again. The number of a process may be reused
once it has ended: so the caller must still live when the walk is over.
"""

import os
import pwd
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from gateway.errors import GatewayError
from gateway.worker import kernel
from gateway.worker.process_tree import read_process

WALKS = 5
LONGEST_LINE = 1000  # of parents: more than anybody has


NO_FILES = "the gateway has as many files open as it may (LimitNOFILE=), and can answer no new caller: try again later"


class CallerEnded(GatewayError):
    """The caller has ended, or cannot be looked up, so that it cannot be identified."""

    def __init__(self) -> None:
        ended = "the program that asked this has ended meanwhile; ask again, and wait for the answer"
        super().__init__(ended if can_open_files() else NO_FILES)


def can_open_files() -> bool:
    """Return True if this process can open one more file, which it needs to look at others."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def find_ancestors(connection: socket.socket) -> tuple[int, ...]:
    """Return the caller's process, its parent, and so on; none for an invisible caller, which is not ours.

    Raises:
        CallerEnded: it has ended.
    """
    peer = kernel.find_peer(connection)
    if peer is None or peer[0] == 0:  # it runs outside of the container in which we are
        return ()
    pid, user = peer
    with _hold_process(connection, pid) as handle:
        found = _walk_until_whole(pid)
        if handle is None or kernel.has_ended(handle):
            raise CallerEnded
    if not found and user == os.geteuid():
        raise CallerEnded
    return found  # another user's process may be hidden from us: what we start is of our own user


def find_user(connection: socket.socket) -> str:
    """Return the name of the user at the other end, or their number if they have no name."""
    peer = kernel.find_peer(connection)
    user = peer[1] if peer else os.geteuid()  # only our user may open it
    try:
        return _find_user_name(user)
    except (KeyError, OSError):  # the number has no user, or no file can be opened to look it up
        return f"user {user}"


@cache
def _find_user_name(user: int) -> str:
    return pwd.getpwuid(user).pw_name


def _walk_until_whole(pid: int) -> tuple[int, ...]:
    for _ in range(WALKS):
        walked = tuple(_walk(pid))
        if not walked or walked[-1] == 0 or _is_hidden(walked[-1]):
            return walked[:-1]
    raise CallerEnded


def _walk(pid: int) -> Iterator[int]:
    """Walk up to 0, which is no process; a walk that ends elsewhere broke off there."""
    for _ in range(LONGEST_LINE):
        yield pid
        if pid == 0:
            return
        process = read_process(pid)
        if process is None:
            return
        pid = process.parent


def _is_hidden(pid: int) -> bool:
    """Return True if the process lives and belongs to another user, so that /proc may hide it."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


@contextmanager
def _hold_process(connection: socket.socket, pid: int) -> Iterator[int | None]:
    """Hold a handle that shows when the caller has ended; None: it has."""
    handle = kernel.open_peer(connection, pid)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)
