"""A worker's hold on its wire: the descriptor is ours as long as it leads to the socket that it led to at first.

A handler may close it, and the next file that it opens may get the number; and a copy that a handler forks has it too.
"""

import os
import select
import socket

# How a worker ends itself; the daemon shows it as the process's exit code.
LOST_WIRE = 71


class WireGuard:
    def __init__(self, descriptor: int) -> None:
        self.socket = socket.socket(fileno=descriptor)
        self.socket.setblocking(False)
        self.descriptor = descriptor
        self._identity = self._look()
        self._owner = os.getpid()

    def is_ours(self) -> bool:
        """Is this the worker, or a copy of it that a handler forked?"""
        return os.getpid() == self._owner

    def check(self) -> None:
        """Without our socket there is nobody to tell."""
        if self._look() != self._identity:
            os._exit(LOST_WIRE)

    def detach(self) -> None:
        """In a copy: what it writes must not reach the daemon."""
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, self.descriptor, inheritable=False)
        os.close(nothing)

    def poll(self, what: int, timeout: int) -> bool:
        """Could one read or write within so many ms?"""
        poll = select.poll()
        poll.register(self.descriptor, what)
        return bool(poll.poll(timeout))

    def _look(self) -> tuple[int, int]:
        try:
            found = os.fstat(self.descriptor)
        except OSError:
            os._exit(LOST_WIRE)
        return found.st_dev, found.st_ino
