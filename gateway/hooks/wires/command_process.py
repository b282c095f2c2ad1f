"""The process of one command, seen from the gateway: the process has no wire, and its output is read to the end."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

import anyio

from gateway.hooks.wires.process_handle import ProcessControl
from gateway.worker.command import GRACE

CHUNK = 1 << 16
LAST_READS = 64  # of the pipe's remaining output when the writers are gone
KILL_AFTER = GRACE + 1.0  # seconds for the keeper to end the command, until the keeper itself is killed


class CommandProcess:
    """A command's process. `output` gets the command's output, in pieces; `wait` returns how the command ended."""

    def __init__(self, control: ProcessControl, output: Callable[[bytes], None], pipe: int) -> None:
        self._control = control
        self._output = output
        self._pipe = pipe
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int | str] = self._loop.create_future()
        self.pid = 0
        self.is_stopping = False
        os.set_blocking(pipe, False)
        self._loop.add_reader(pipe, self._read)

    async def wait(self) -> int | str:
        """Return the command's exit code, minus the signal that ended the command, or a text.

        If the caller is cancelled, the process is killed.
        """
        try:
            return await asyncio.shield(self._ended)
        finally:
            if not self._ended.done():
                with anyio.CancelScope(shield=True):
                    await self._stop()

    async def _stop(self) -> None:
        self._control("end")
        with anyio.move_on_after(KILL_AFTER):
            await asyncio.shield(self._ended)
        if not self._ended.done():
            self.kill("it did not end within its time")
            await asyncio.shield(self._ended)

    def kill(self, _reason: str) -> None:
        self._control("kill")

    def lose(self, why: str) -> None:
        """End the command, because the fork server has died: the keeper notices that too, and kills its processes."""
        self.end(why)

    def end(self, how: int | str) -> None:
        if self._ended.done():
            return
        self._loop.remove_reader(self._pipe)
        with suppress(BlockingIOError):
            for _ in range(LAST_READS):
                if not (piece := os.read(self._pipe, CHUNK)):
                    break
                self._output(piece)
        os.close(self._pipe)
        self._ended.set_result(how)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            piece = os.read(self._pipe, CHUNK)
            if piece:
                self._output(piece)
            else:
                self._loop.remove_reader(self._pipe)
