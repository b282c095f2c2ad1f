"""A program in a process of the fork server, with the interface of a local subprocess.

Restrictions must be set inside the process, before the program starts and without other threads: so the process is a
child of the fork server, and not of the daemon, which has threads.
"""

import asyncio
import subprocess
from asyncio.base_subprocess import BaseSubprocessTransport
from io import FileIO
from typing import Any

from gateway.hooks.wires.process_handle import ProcessControl
from gateway.hooks.wires.wire import HookFailed
from gateway.worker.kernel import kill_group


class ProgramProcess:
    """The process, with the part of `subprocess.Popen` that a transport needs."""

    def __init__(self, control: ProcessControl, stdin: int, stdout: int, stderr: int | None) -> None:
        self.stdin = FileIO(stdin, "wb")
        self.stdout = FileIO(stdout, "rb")
        self.stderr = None if stderr is None else FileIO(stderr, "rb")
        self.returncode: int | None = None
        self.is_stopping = self.is_orphaned = False
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: ProgramTransport | None = None
        self._control = control
        self._pid = 0

    @property
    def pid(self) -> int:
        return self._pid

    @pid.setter
    def pid(self, pid: int) -> None:
        self._pid = pid
        if not self.started.done():
            self.started.set_result(None)

    def attach(self, transport: "ProgramTransport") -> None:
        """Notify this transport of the end, which may have come already."""
        self._transport = transport
        if self.returncode is not None:
            transport.tell_ended(self.returncode)

    def close(self) -> None:
        """Close the pipes of a process that was not started."""
        for file in (self.stdin, self.stdout, self.stderr):
            if file is not None:
                file.close()

    def poll(self) -> int | None:
        return self.returncode

    def kill(self, _reason: str = "") -> None:
        self._control("kill")

    def end(self, how: int | str) -> None:
        """Handle the end; a text means that the process never started."""
        if isinstance(how, str) and not self.started.done():
            self.started.set_exception(OSError(how))
            return
        self.returncode = how if isinstance(how, int) else -9
        if self._transport is not None:
            self._transport.tell_ended(self.returncode)

    def lose(self, why: str) -> None:
        """Handle the loss of the fork server: the program dies with the fork server, but its children do not."""
        self.is_orphaned = True
        if not self.started.done():
            self.started.set_exception(HookFailed(why, kind="orphaned"))
            return
        kill_group(self._pid)
        self.end(why)


class ProgramTransport(BaseSubprocessTransport):
    """The pipes of a `ProgramProcess`, and its end."""

    def _start(self, args: Any, *_: Any, **__: Any) -> None:
        self._proc = args

    def tell_ended(self, status: int) -> None:
        self._process_exited(status)


def is_orphan(transport: asyncio.SubprocessTransport | None) -> bool:
    """Return True if this program died with the fork server."""
    process = transport.get_extra_info("subprocess") if transport is not None else None
    return isinstance(process, ProgramProcess) and process.is_orphaned


async def connect_program(process: ProgramProcess, protocol: asyncio.SubprocessProtocol) -> asyncio.SubprocessTransport:
    """Wait for a requested process and return its transport. Raises OSError or HookFailed."""
    try:
        await process.started
    except BaseException:
        process.kill()
        process.close()
        raise
    loop = asyncio.get_running_loop()
    connected: asyncio.Future[None] = loop.create_future()
    pipe, errors = subprocess.PIPE, None if process.stderr is None else subprocess.PIPE
    transport = ProgramTransport(loop, protocol, process, False, pipe, pipe, errors, 0, connected)  # type: ignore[arg-type]
    await connected
    process.attach(transport)
    return transport
