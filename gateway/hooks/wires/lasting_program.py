"""A hook that is a program of any language, and lasts: a JSON-RPC message a line on its stdin and stdout.

It is asked, and may ask, as a worker does. What it writes to stderr is its log.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from gateway.errors import HookError
from gateway.events import Question, outcome_from
from gateway.hooks.wires.codec import RpcMessage, encode_fields
from gateway.hooks.wires.output import HookOutput
from gateway.hooks.wires.peer import Peer
from gateway.hooks.wires.program import ProgramSpec, close_pipes, describe_start_failure, kill_group, limit_program
from gateway.hooks.wires.timeouts import CallTimeout
from gateway.hooks.wires.wire import CallMeta, Capability, Disconnection, HookAnswer, HookFailed

EXIT_DELAY = 0.1  # seconds that a program which closed its stdout has to end by itself
OUTPUT_DELAY = 0.2  # seconds for what an ended program has written; what it left behind may hold its stdout longer

_encode = msgspec.json.Encoder().encode


class LastingProgramPipes(asyncio.SubprocessProtocol):
    """Carries bytes between a program and the peer; `silent`: it closed its stdout, `ended`: with this status.

    A program may answer and end at once: its end counts when all that it wrote has been read.
    """

    transport: asyncio.SubprocessTransport | None = None  # until there is a process
    is_running = False

    def __init__(self, peer: Peer, silent: Callable[[], None], ended: Callable[[int], None]) -> None:
        self._peer = peer
        self._silent = silent
        self._ended = ended

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport
        self.is_running = True
        reader, writer = transport.get_pipe_transport(1), transport.get_pipe_transport(0)
        assert isinstance(reader, asyncio.ReadTransport)
        assert isinstance(writer, asyncio.WriteTransport)
        self._peer.attach(reader, writer)

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - stdout is the only pipe read here
        self._peer.received(data)

    def pause_writing(self) -> None:
        self._peer.pause_requests()

    def resume_writing(self) -> None:
        self._peer.resume_requests()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        if fd == 1:
            asyncio.get_running_loop().call_later(EXIT_DELAY, self._silent)

    def process_exited(self) -> None:
        assert self.transport
        self.is_running = False
        kill_group(self.transport.get_pid())
        asyncio.get_running_loop().call_later(OUTPUT_DELAY, close_pipes, self.transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        assert self.transport
        self._ended(self.transport.get_returncode() or 0)
        self.transport.close()


class LastingProgram:
    """The wire to a lasting program; it is gone when the program has ended."""

    def __init__(self, spec: ProgramSpec, serve: Capability, tasks: TaskGroup) -> None:
        self._spec = spec
        self._peer = Peer(serve, tasks, self._noticed, self.kill)
        self._pipes = LastingProgramPipes(self._peer, partial(self.kill, "it closed its stdout"), self._ended)
        self._output = HookOutput(spec.log)
        self._running: dict[int, CallTimeout] = {}
        self._why = ""
        self.gone = Disconnection()

    @classmethod
    async def start(cls, spec: ProgramSpec, serve: Capability, tasks: TaskGroup) -> "LastingProgram":
        """Raises HookError when the program cannot be started; nothing of it is left then."""
        program = cls(spec, serve, tasks)
        try:
            await program._begin()
        except BaseException as error:
            program._end("it was not started")
            if isinstance(error, OSError | ValueError):
                raise HookError(describe_start_failure(spec, error)) from None
            raise
        limit_program(program.pid, spec)
        return program

    @property
    def pid(self) -> int:
        return self._pipes.transport.get_pid() if self._pipes.transport else 0

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> HookAnswer:
        if self.gone:
            raise self._failure()
        number, pending = self._peer.call(name, encode_fields(fields), _encode(meta), self._over)
        running = self._running[number] = CallTimeout(
            self, partial(self._peer.tell, "$cancel", {"id": number}), timeout
        )
        try:
            message = await pending.future
        except asyncio.CancelledError:
            running.abandon()
            raise
        except HookFailed as failed:
            raise self._late(running) if running.is_late else failed from None
        if running.is_late:
            raise self._late(running)
        return _read_answer(self._spec.name, message, meta)

    async def stop(self, grace: float) -> None:
        """Closing its stdin tells a program that no more will come."""
        self._why = self._why or "it was stopped"
        if self._pipes.transport and (stdin := self._pipes.transport.get_pipe_transport(0)):
            stdin.close()
        with anyio.move_on_after(grace):
            await self.gone.wait()
        self.kill("it was stopped")
        with anyio.CancelScope(shield=True):
            await self.gone.wait()

    def dump(self) -> None:
        """A foreign program cannot say where it hangs."""

    def free(self) -> None:
        """Nor be made to let go."""

    def kill(self, reason: str) -> None:
        self._why = self._why or reason
        if self._pipes.is_running:
            kill_group(self.pid)

    async def _begin(self) -> None:
        read, write = os.pipe()
        self._output.attach(read)
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: self._pipes,
                *self._spec.command,
                stderr=write,
                cwd=self._spec.folder,
                env=self._spec.environ(),
                start_new_session=True,
            )
        finally:
            os.close(write)

    def _over(self, number: int) -> None:
        self._running.pop(number).end()

    def _late(self, running: CallTimeout) -> HookFailed:
        return HookFailed(f"{self._spec.name} {running.why}", kind="timeout")

    def _noticed(self, message: RpcMessage) -> None:
        """It has nothing to tell about the wire itself."""

    def _ended(self, status: int) -> None:
        how = f"it was ended by signal {-status}" if status < 0 else f"it ended with exit code {status}"
        self._end(self._why or how)

    def _end(self, why: str) -> None:
        self.gone.tell(why)
        self._peer.close(self._failure)
        self._output.close()

    def _failure(self) -> HookFailed:
        return HookFailed(f"{self._spec.name}: {self.gone.reason}", kind="died")


def _read_answer(name: str, message: RpcMessage, meta: CallMeta) -> HookAnswer:
    if message.error is not None:
        raise HookFailed(f"{name} says: {message.error.message[:2000]}", kind="raised")
    result = message.result
    try:
        outcome = outcome_from(result)
    except (TypeError, ValueError) as error:
        raise HookFailed(f"{name}: {error}", kind="garbled") from None
    if not meta.decides:
        return HookAnswer()
    return HookAnswer(ask=outcome) if isinstance(outcome, Question) else HookAnswer(result=result)
