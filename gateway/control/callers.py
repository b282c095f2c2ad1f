"""Who calls on the control socket: the process at the other end, and those that it comes from.

The kernel notes who connected, and keeps that note whatever becomes of the process. Its parents stand in /proc; who is
orphaned meanwhile has another parent, so a walk that loses its way begins again. A number of a process may be given to
another once it has ended: so it must still live when the walk is over.
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


NO_FILES = "the gateway has as many files open as it may (LimitNOFILE=), and can answer nobody new: try again later"


class CallerEnded(GatewayError):
    """Whoever called has ended, or cannot be looked at, so that nobody can say who it was."""

    def __init__(self) -> None:
        ended = "whoever asked this has ended meanwhile; ask again, and wait for the answer"
        super().__init__(ended if can_open_files() else NO_FILES)


def can_open_files() -> bool:
    """Whether this process may open one more; to look at others, it must."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def find_ancestors(connection: socket.socket) -> tuple[int, ...]:
    """The caller's process, its parent, and so on; none for one that cannot be seen from here, and so is not ours.

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
    """The name of the user at the other end; their number, where they have none."""
    peer = kernel.find_peer(connection)
    user = peer[1] if peer else os.geteuid()  # nobody else may open it
    try:
        return _find_user_name(user)
    except (KeyError, OSError):  # nobody has that number, or no file can be opened to look
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
    """Up to 0, which is nobody; what is last and not 0 could not be looked at."""
    for _ in range(LONGEST_LINE):
        yield pid
        if pid == 0:
            return
        process = read_process(pid)
        if process is None:
            return
        pid = process.parent


def _is_hidden(pid: int) -> bool:
    """Whether it lives and belongs to somebody else, so that /proc may not show it."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


@contextmanager
def _hold_process(connection: socket.socket, pid: int) -> Iterator[int | None]:
    """Something by which it can be seen whether the caller has ended; None: it has."""
    handle = kernel.open_peer(connection, pid)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)
