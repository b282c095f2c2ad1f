"""The destinations of log lines. A sink never raises and never waits for long: it counts lines that it cannot write."""

import os
import select
import stat
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TextIO

import msgspec

from gateway.errors import FULL_DISK
from gateway.logs.lines import LineFormatter, LogLine, as_json

WRITE_TIMEOUT = 1.0
CHUNK_BYTES = 4096  # a pipe that can be written to has room for this much (PIPE_BUF), so the write does not block


class Sink(Protocol):
    """An end of the log."""

    lost: int

    def write(self, line: LogLine) -> None: ...

    def close(self) -> None: ...


class StreamSink:
    """The standard error. Its reader may be slow, or gone; neither is the daemon's end."""

    def __init__(self, stream: TextIO, look: LineFormatter) -> None:
        self.lost = 0
        self._look = look
        self._descriptor = stream.fileno()
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLOUT)
        self._patience = WRITE_TIMEOUT
        stream.flush()

    def write(self, line: LogLine) -> None:
        try:
            self._write(f"{self._look(line)}\n".encode(errors="backslashreplace"))
        except OSError as error:
            self.lost += 1
            if error.errno in FULL_DISK:
                return  # the file takes lines again as soon as there is room
            # The reader is gone for good. Other writers to this stream must not stumble over that either.
            with suppress(OSError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._descriptor)
                os.close(nowhere)

    def close(self) -> None:
        """Leave the stream open: it belongs to the process."""

    def _write(self, data: bytes) -> None:
        for start in range(0, len(data), CHUNK_BYTES):
            if not self._poll.poll(self._patience * 1000):
                self._patience = 0.0  # a reader that stopped is waited for once
                self.lost += 1
                return
            os.write(self._descriptor, data[start : start + CHUNK_BYTES])
        self._patience = WRITE_TIMEOUT


class FileSink(msgspec.Struct, eq=False):
    """JSON lines in a file of 0600 that is replaced when it is full; `keep` old ones stay, `.1` the youngest."""

    _path: Path
    size: int
    keep: int
    lost: int = 0
    _descriptor: int = -1
    _written: int = 0

    def write(self, line: LogLine) -> None:
        data = f"{as_json(line)}\n".encode(errors="backslashreplace")
        try:
            self._make_room(len(data))
            if os.write(self._descriptor, data) != len(data):
                self.lost += 1  # the disk is full; the half line ends with the next one's start
                os.write(self._descriptor, b"\n")
            self._written += len(data)
        except OSError:
            self.lost += 1

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _make_room(self, length: int) -> None:
        if self._descriptor >= 0 and os.fstat(self._descriptor).st_nlink == 0:
            self.close()  # the file was removed
        if self._descriptor < 0:
            self._open()
        if self._written and self._written + length > self.size:
            self.close()
            self._shift()
            self._open()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        self._descriptor = os.open(self._path, flags, 0o600)
        found = os.fstat(self._descriptor)
        self._written = found.st_size
        if stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
            os.fchmod(self._descriptor, 0o600)

    def _shift(self) -> None:
        older = [self._path, *(self._path.with_name(f"{self._path.name}.{age}") for age in range(1, self.keep + 1))]
        older[-1].unlink(missing_ok=True)
        for young, old in zip(older[-2::-1], older[:0:-1], strict=True):
            with suppress(FileNotFoundError):
                young.replace(old)
