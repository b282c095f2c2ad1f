"""A command of ours as a fork of a warm process: a real process that starts in milliseconds, used as a `Popen`."""

import atexit
import io
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache

from gateway.config.home import get_process_environment
from gateway.errors import GatewayError

PROGRAM = (sys.executable, "-m", "gateway.cli")
# Python and the C library read these at their start. The warm process has our values of them, and no others.
READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "COVERAGE_")
HANDED_ON = ("LANG", "COVERAGE_PROCESS_CONFIG")


class ForkedCommand(subprocess.Popen[str]):
    """A child of the warm process, used as a child of ours."""

    # `communicate` reads these, which `Popen.__init__` sets.
    text_mode, _input, _communication_started, _sigint_wait_secs = True, None, False, 0.25

    def __init__(self, args: Sequence[str], status: int, output: Sequence[int]) -> None:
        self.args = [*PROGRAM, *args]
        self._status = open(status, "rb", buffering=0)  # noqa: SIM115 - a line with its number, one when it has ended
        self.pid = self._read_number()
        self.returncode = None
        self.stdin = None
        self.stdout, self.stderr = (io.TextIOWrapper(os.fdopen(end, "rb")) for end in output)

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = self._read_number()
            self._status.close()
        return self.returncode

    def _read_number(self) -> int:
        if not (line := self._status.readline()):
            raise GatewayError("the warm process, which forks commands, has ended; its last words are above")
        return int(line)


def begin_command(args: Sequence[str], environ: Mapping[str, str]) -> ForkedCommand | None:
    """Begin a command; None if it needs a new program, since Python would start differently there."""
    wanted = {name: value for name, value in environ.items() if name.startswith(READ_AT_START)}
    if wanted != find_shared() or not hasattr(os, "pidfd_open"):
        return None
    request = {"args": args, "environ": environ, "folder": os.getcwd(), "umask": read_umask()}  # noqa: PTH109 - as text
    (out, their_out), (err, their_err), (status, their_status) = os.pipe(), os.pipe(), os.pipe()
    theirs = (their_out, their_err, their_status)
    try:
        socket.send_fds(open_warm_process(), [json.dumps(request).encode()], [0, *theirs])
    finally:
        for end in theirs:
            os.close(end)
    return ForkedCommand(args, status, (out, err))


def find_shared() -> dict[str, str]:
    ours = get_process_environment()
    return {name: ours[name] for name in HANDED_ON if name in ours}


@cache
def open_warm_process() -> socket.socket:
    """Return the socket to this process's warm process, which ends with us."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        warm = subprocess.Popen(
            [sys.executable, "-m", "gateway.testing.warm_process", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=find_shared(),
        )
    atexit.register(warm.wait)
    atexit.register(ours.close)
    return ours


def read_umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
