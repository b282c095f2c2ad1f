"""A process that reads foreign files: a worker of the fork server, one for each handler.

A foreign text can be made so that reading it takes for ever, or too much memory. On the loop that would block everyone.
So it is read in a worker, which has no network, no access to files, no secret and bounded memory, and is killed when
its time is over: the caller gets an error, and the next caller a new process. It starts at its first use, and ends
after a while without one.

Requests are handled one after the other: a slow file must not use up the time of another one.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from gateway.errors import AgentError, HookError
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.process_handle import write_memory_file
from gateway.hooks.wires.wire import HookFailed
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.threads import run_in_thread
from gateway.worker.process_tree import read_process
from gateway.worker.protocol import CallMeta, WorkerSpec
from gateway.worker.sandbox import Sandbox, find_needed_paths

LOOK_PAUSE = 0.1  # seconds between two looks at how long it has run
IDLE_LIMIT = 60.0  # seconds that it lives after it was last wanted
LARGE_INPUT = 4_000_000  # bytes from which on writing them is not done on the loop
DECIDES = CallMeta(decides=True, writable=())


class ParserLimits(msgspec.Struct, frozen=True):
    """The limits of one request.

    `memory`: bytes of data. `time`: seconds of processor time. `wait`: seconds until it has had these on a machine that
    is busy with other things.
    """

    memory: int
    time: float
    wait: float


class ParserWorker(msgspec.Struct, eq=False):
    """A process for one handler, and the requests to it."""

    _fork_server: ForkServerClient
    _handler: Path
    _log: Path
    _limits: ParserLimits
    _idle: float = IDLE_LIMIT
    _turn: anyio.Lock = msgspec.field(default_factory=anyio.Lock)
    _worker: WorkerHandle | None = None
    _input: int = -1  # the worker's: a file in memory, of which neither side has to make lines
    _end: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int:
        """The id of the present process, or 0."""
        return self._worker.process.pid if self._worker and not self._worker.gone else 0

    async def ask(self, verb: str, what: str, data: bytes, about: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the handler's answer about this data.

        Raises:
            AgentError: in words for the caller, about `what`.
        """
        async with self._turn:
            worker = await self._ready(what)
            if len(data) > LARGE_INPUT:
                await run_in_thread(_write_anew, self._input, data)
            else:
                _write_anew(self._input, data)
            try:
                with _limiting_time(worker.process.pid, self._limits):
                    answer = await worker.call(verb, about, DECIDES, 2 * self._limits.wait)
            except TimeoutError:
                raise AgentError(f"{what} could not be read within {self._limits.time:g} s") from None
            except HookFailed as failed:
                raise AgentError(f"{what} could not be read: {failed}") from None
            else:
                self._end = asyncio.get_running_loop().call_later(self._idle, self._finish)
            finally:
                if self._end is None:  # late, failed or given up: no caller waits for it any more
                    self._finish()
        result: Mapping[str, Any] = answer.result
        return result

    async def _ready(self, what: str) -> WorkerHandle:
        """Return an idle process that will not end for idleness now."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if self._worker is None or self._worker.gone:
            self._finish()
            self._input = write_memory_file(self._log.stem)
            spec = WorkerSpec(
                name=self._log.stem,
                handler=str(self._handler),
                env={},
                options={},
                path=(),
                modules={},
                memory=self._limits.memory,
                is_offline=True,
                label="",
                sandbox=Sandbox(read=find_needed_paths()),
            )
            try:
                self._worker = await self._fork_server.start(spec, _refuse, self._log, stdin=self._input)
            except HookFailed as failed:
                raise AgentError(f"{what} could not be read: no process can be made for it: {failed}") from None
        return self._worker

    def _finish(self) -> None:
        worker, self._worker, self._end = self._worker, None, None
        if worker is not None:
            worker.process.kill("the gateway does not need it any more")
        if self._input >= 0:
            os.close(self._input)
            self._input = -1


def _write_anew(descriptor: int, data: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, data, 0)


@contextmanager
def _limiting_time(pid: int, limits: ParserLimits) -> Iterator[None]:
    """Limit the time inside. Raises TimeoutError once this process has had its time, or does not get it."""
    loop, before = asyncio.get_running_loop(), read_process(pid)
    timers: list[asyncio.TimerHandle] = []

    def look() -> None:
        now = read_process(pid)
        if now is None or before is None or now.ran - before.ran >= limits.time - LOOK_PAUSE:
            scope.cancel()
        else:
            timers[:] = [loop.call_later(LOOK_PAUSE, look)]

    timers.append(loop.call_later(limits.time, look))
    with anyio.move_on_after(limits.wait) as scope:
        try:
            yield
        finally:
            timers[0].cancel()
    if scope.cancelled_caught:
        raise TimeoutError


async def _refuse(verb: str, _params: dict[str, Any], _during: str) -> Any:
    raise HookError(f"the parser asks for nothing, and wanted {verb!r}")
