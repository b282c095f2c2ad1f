"""A hook's output in a file of its own, with the time of each line.

The gateway reads a limited amount a second: it drops output over this rate and logs the dropped amount, and the
program's own writes wait. Two files of bounded size are kept.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

BYTES_PER_SECOND = 64 << 10  # bytes a second
BURST = 1 << 20
CHUNK = 1 << 16
READ_PAUSE = 0.005  # seconds between two reads from a program over the rate
LAST_READS = 16  # of the pipe's remaining output when its writer is gone
MAX_FILE_BYTES = 4 << 20  # bytes in a file; then the file becomes the older of the two


class HookOutput:
    """The log of one hook. `redact` removes secrets from each line."""

    def __init__(self, path: Path, redact: Callable[[str], str] = str) -> None:
        self._path = path
        self._redact = redact
        self._loop = asyncio.get_running_loop()
        self._file: int | None = None
        self._pipe: int | None = None
        self._line = b""  # a line without its end so far
        self._tokens = float(BURST)
        self._at = self._loop.time()
        self._dropped = 0

    def attach(self, pipe: int) -> None:
        """Own this pipe, and read the hook's output from it."""
        os.set_blocking(pipe, False)
        self._pipe = pipe
        self._loop.add_reader(pipe, self._read)

    def note(self, text: str) -> None:
        """Write a remark of the gateway between the hook's own lines."""
        self._take(text.encode("utf-8", "backslashreplace").rstrip(b"\n") + b"\n")

    def close(self) -> None:
        """Read the rest of the pipe, and close it for all writers."""
        if self._pipe is not None:
            self._loop.remove_reader(self._pipe)
            with suppress(BlockingIOError):
                for _ in range(LAST_READS):
                    data = os.read(self._pipe, CHUNK)
                    if not data:
                        break
                    self._take(data)
            os.close(self._pipe)
            self._pipe = None
        self._end_line()
        self._note_dropped()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read(self) -> None:
        if self._pipe is None:
            return
        try:
            data = os.read(self._pipe, CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._pipe)
        elif not self._take(data):
            self._loop.remove_reader(self._pipe)
            self._loop.call_later(READ_PAUSE, self._resume)

    def _resume(self) -> None:
        if self._pipe is not None:
            self._loop.add_reader(self._pipe, self._read)

    def _take(self, data: bytes) -> bool:
        """Write the data if it is within the rate; return False otherwise."""
        now = self._loop.time()
        self._tokens = min(BURST, self._tokens + (now - self._at) * BYTES_PER_SECOND)
        self._at = now
        if len(data) > self._tokens:
            self._dropped += len(data)
            return False
        self._tokens -= len(data)
        self._note_dropped()
        *lines, self._line = (self._line + data).split(b"\n")
        self._write(lines)
        if len(self._line) > CHUNK:
            self._end_line()
        return True

    def _end_line(self) -> None:
        if self._line:
            line, self._line = self._line, b""
            self._write([line])

    def _note_dropped(self) -> None:
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._end_line()
            self._write([b"... %d bytes dropped: more than %d kB a second ..." % (dropped, BYTES_PER_SECOND >> 10)])

    def _write(self, lines: list[bytes]) -> None:
        if not lines:
            return
        stamp = time.strftime("%Y-%m-%d %H:%M:%S ").encode()
        text = b"\n".join(lines).decode("utf-8", "surrogateescape")
        lines = self._redact(text).encode("utf-8", "surrogateescape").split(b"\n")
        with suppress(OSError):  # a full disk costs the hook its log, and no one else anything
            os.write(self._open(), b"".join(stamp + line + b"\n" for line in lines))

    def _open(self) -> int:
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.fstat(self._file).st_size < MAX_FILE_BYTES:
            return self._file
        self._turn_over(self._file)
        self._file = None
        return self._open()

    def _turn_over(self, file: int) -> None:
        """Rotate the file. In a reload, two workers write one log: the second worker finds it rotated already."""
        with suppress(FileNotFoundError):
            if self._path.stat().st_ino == os.fstat(file).st_ino:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
        os.close(file)
