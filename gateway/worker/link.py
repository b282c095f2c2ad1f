"""The worker's end of the wire: complete messages in both directions, even while a hook blocks the loop.

The daemon reads no faster than it can serve, and stops reading while we do not read its answers. So a writer must also
read: the thread of the loop does, while it waits for room.
"""

import os
import select
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NoReturn

import msgspec

from gateway.worker.json_decoder import why_hard
from gateway.worker.protocol import BROKEN_WIRE, LOST_WIRE, MAX_LINE_BYTES

CHUNK = 1 << 16
WRITE_POLL_MS = 20  # ms between two checks if another thread lets us write
FORKED_COPY = 0  # the exit code of a forked copy that would write to our wire


class WireGuard:
    def __init__(self, descriptor: int) -> None:
        self.socket = socket.socket(fileno=descriptor)
        self.socket.setblocking(False)
        self.descriptor = descriptor
        self._identity = self._look()
        self._owner = os.getpid()

    def is_ours(self) -> bool:
        """Return True in the worker itself, and False in a copy that a hook forked."""
        return os.getpid() == self._owner

    def check(self) -> None:
        """Exit if the socket is no longer ours, since no report is possible."""
        if self._look() != self._identity:
            os._exit(LOST_WIRE)

    def poll(self, what: int, timeout: int) -> bool:
        """Return True if the socket becomes readable or writable within so many ms."""
        poll = select.poll()
        poll.register(self.descriptor, what)
        return bool(poll.poll(timeout))

    def _look(self) -> tuple[int, int]:
        try:
            found = os.fstat(self.descriptor)
        except OSError:
            os._exit(LOST_WIRE)
        return found.st_dev, found.st_ino


def replace_by_nothing(descriptor: int) -> None:
    """Point a descriptor at /dev/null, so that a forked copy cannot write to the daemon."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)


class WireMessage(msgspec.Struct):
    """One line of the daemon: a call, a notice, or the response to a request of ours."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")
    meta: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: dict[str, Any] | None = None


_PLAIN_FORMS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int),
    (float, float),
    (dict, dict),
    (os.PathLike, os.fspath),
)


def to_plain(value: Any) -> Any:
    """Convert values that JSON lacks but hooks use: subclasses of str and numbers, and paths."""
    for kind, convert in _PLAIN_FORMS:
        if isinstance(value, kind):
            return convert(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


encode = msgspec.json.Encoder(enc_hook=to_plain).encode
_decode = msgspec.json.Decoder(WireMessage).decode


class SignalGuard(msgspec.Struct, eq=False):
    """A block that signals must not interrupt, since a message would be torn: they wait until `afterwards`.

    Only for the loop's thread, which is also the only one that a signal interrupts.
    """

    _depth: int = 0
    afterwards: Callable[[], None] | None = None

    def __bool__(self) -> bool:
        return self._depth > 0

    def __enter__(self) -> "SignalGuard":
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self.afterwards is not None and not self._depth:
            afterwards, self.afterwards = self.afterwards, None
            afterwards()


class WorkerLink:
    def __init__(self, descriptor: int) -> None:
        self.left: Callable[[], object] = lambda: None  # called after a read if the loop must act on a message
        self.wire_guard = WireGuard(descriptor)
        self._thread = threading.get_ident()
        self._lock = threading.RLock()
        self._rest = bytearray()
        self.arrived: list[WireMessage] = []  # messages read while writing; the loop takes them from here
        self.signal_guard = SignalGuard()

    def in_loop_thread(self) -> bool:
        return threading.get_ident() == self._thread

    def send(self, message: dict[str, Any]) -> None:
        """Send a message. Raises ValueError if it is too long, TypeError or similar if it is not JSON."""
        if not self.wire_guard.is_ours():
            os._exit(FORKED_COPY)
        data = encode(message)
        if len(data) > MAX_LINE_BYTES:
            raise ValueError(
                f"{len(data) >> 20} MB are more than the {MAX_LINE_BYTES >> 20} MB that an answer may have"
            )
        if reason := why_hard(data):
            raise ValueError(f"an answer of {reason} is not read; give less, or one text")
        with self.signal_guard if self.in_loop_thread() else nullcontext():
            self._write(memoryview(data + b"\n"))

    def _write(self, data: memoryview) -> None:
        while not self._lock.acquire(blocking=False) and not self._lock.acquire(timeout=WRITE_POLL_MS / 1000):
            self._make_room()
        try:
            self.wire_guard.check()
            while data:
                try:
                    data = data[self.wire_guard.socket.send(data) :]
                except BlockingIOError:
                    self.wire_guard.poll(select.POLLOUT, WRITE_POLL_MS)
                    self._make_room()
                except OSError:
                    self._lost()
        finally:
            self._lock.release()

    def _make_room(self) -> None:
        if self.in_loop_thread():
            self.read()
            if self.arrived:
                self.left()

    def read(self) -> None:
        """Move received messages to `arrived`; only in the loop's thread."""
        with self.signal_guard:
            try:
                data = self.wire_guard.socket.recv(CHUNK)
                if not data:
                    self._lost()
                self._rest += data
                if b"\n" in data:
                    *lines, rest = bytes(self._rest).split(b"\n")
                    self._rest = bytearray(rest)
                    self.arrived += map(_decode, lines)
            except BlockingIOError:
                pass
            except OSError:
                os._exit(BROKEN_WIRE)

    def wait(self, timeout: int) -> None:
        """Wait until something has been read, at most so many ms."""
        if self.wire_guard.poll(select.POLLIN, timeout):
            self._make_room()

    def receive_first(self) -> WireMessage:
        """Return the first message on the wire."""
        while not self.arrived:
            self.wait(-1)
        return self.arrived.pop(0)

    def take(self) -> list[WireMessage]:
        taken, self.arrived = self.arrived, []
        return taken

    def take_responses(self) -> list[WireMessage]:
        """Take the responses; the rest stays for the loop."""
        arrived = self.take()
        self.arrived = [message for message in arrived if message.method is not None]
        return [message for message in arrived if message.method is None]

    def _lost(self) -> NoReturn:
        """Kill the whole group, because the daemon is gone."""
        os.killpg(0, signal.SIGKILL)
        os._exit(BROKEN_WIRE)
