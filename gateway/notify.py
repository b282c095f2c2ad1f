"""Messages to the supervisor: sd_notify, one datagram each. They never raise and never wait.

This module does not read the environment: `config` does, and passes on NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
Without a socket a message is dropped, so that the daemon does the same under any supervisor.
"""

import contextlib
import os
import socket
import time


class Notifier:
    """Speaks to the socket at `address`: a path, or an abstract name that begins with `@`; empty for no supervisor."""

    def __init__(self, address: str = "") -> None:
        self.address = "\0" + address[1:] if address.startswith("@") else address

    def ready(self, status: str = "") -> bool:
        """Report that the daemon serves: at the end of its start, and again at the end of a reload."""
        return self._send("READY=1", *_status_lines(status))

    def status(self, text: str) -> bool:
        return self._send(*_status_lines(text))

    def reloading(self) -> bool:
        """Report that a reload begins; the supervisor waits for the next `ready`."""
        return self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def starting(self, seconds: float) -> bool:
        """Report that the start goes on, and may take that long from now."""
        return self._send(f"EXTEND_TIMEOUT_USEC={round(seconds * 1_000_000)}")

    def stopping(self, seconds: float, status: str = "") -> bool:
        """Report that the daemon drains, and may take that long: a supervisor must not end it before."""
        return self._send("STOPPING=1", f"EXTEND_TIMEOUT_USEC={round(seconds * 1_000_000)}", *_status_lines(status))

    def alive(self) -> bool:
        """Report that the loop turns, which resets the watchdog."""
        return self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> bool:
        """Send the lines; False after a failure. A full or vanished socket must not block or end a working daemon."""
        if not self.address or not lines:
            return False
        with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.setblocking(False)
            channel.connect(self.address)
            channel.send("\n".join(lines).encode())
            return True
        return False


def read_watchdog(usec: str, pid: str) -> float:
    """Return the seconds within which the supervisor wants a sign of life; 0 without a watchdog.

    `usec` and `pid` are the environment's WATCHDOG_USEC and WATCHDOG_PID. A watchdog that was set for another process,
    for instance for the parent of this one, is not ours to feed.
    """
    if not usec.isdecimal() or (pid and pid != str(os.getpid())):
        return 0.0
    return int(usec) / 1_000_000


def _status_lines(text: str) -> list[str]:
    """Return one line at most: a line break would start a new assignment."""
    return [f"STATUS={' '.join(text.split())}"] if text else []
