"""A hook that is a program: its environment, its restrictions, and its end.

The program leads its own process group, which ends with the program. The program sees the environment that the manifest
declares.
"""

import asyncio
import errno
import os
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import msgspec
from anyio.abc import TaskGroup

from gateway.hooks.wires.codec import RpcMessage, make_bad_message
from gateway.hooks.wires.oneshot_answer import OwnFormat, ProgramFormat
from gateway.hooks.wires.output import HookOutput
from gateway.hooks.wires.peer import Peer
from gateway.hooks.wires.process_handle import describe_exit
from gateway.hooks.wires.program_process import is_orphan
from gateway.hooks.wires.timeouts import ActiveCalls
from gateway.hooks.wires.wire import (
    Capability,
    Disconnection,
    FailureKind,
    HookAnswer,
    HookFailed,
    answer_of,
    unused_part_of,
)
from gateway.threads import run_in_thread
from gateway.worker import kernel
from gateway.worker.kernel import kill_group
from gateway.worker.process_marks import env_of, kill_marked, make_mark
from gateway.worker.process_tree import find_descendants, has_sockets
from gateway.worker.protocol import MAX_LINE_BYTES, NICE, OOM_SCORE, CallMeta, ProgramRequest
from gateway.worker.sandbox import Sandbox

# runtimes reserve memory that they never use: Node needs half of this for code, or does not start
RUNTIME_RESERVE = 1 << 30

SHORT_ERRORS = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM})

_encode = msgspec.json.Encoder().encode


ForkProgram: TypeAlias = Callable[
    [ProgramRequest, asyncio.SubprocessProtocol, int | None], Awaitable[asyncio.SubprocessTransport]
]
"""Start a program in a process that can be restricted, and that ends with us; the number is a descriptor for its
errors.
"""


class ProgramSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A program and its environment."""

    name: str
    command: tuple[str, ...]
    folder: Path
    log: Path
    redact: Callable[[str], str] = str  # removes secrets from its output
    env: Mapping[str, str] = {}  # its whole environment
    options: Mapping[str, Any] = {}
    mark: str = ""  # identifies the processes that the program leaves behind
    is_guard: bool = False  # `on_error: deny`: output without a meaning is a failure
    memory: int | None
    sandbox: Sandbox | None = None  # its restrictions
    fork: ForkProgram | None = None  # starts the program; if None, asyncio starts it without restrictions

    def environ(self) -> dict[str, str]:
        """Return the environment; HOOK_OPTIONS passes the options to a program in any language."""
        told = {"HOOK_NAME": self.name, "HOOK_OPTIONS": _encode(self.options).decode()}
        return {**self.env, **env_of(self.mark), **told}


def describe_start_failure(spec: ProgramSpec, error: Exception) -> str:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    helps = "it is tried again" if is_limit_error(error) else "see that it is there and executable"
    return f"{spec.name}: {spec.command[0]} cannot be started: {why}; {helps}"


def is_limit_error(error: Exception) -> bool:
    """Return True if the system has no free process or descriptor at the moment."""
    return isinstance(error, OSError) and error.errno in SHORT_ERRORS


async def open_process(
    spec: ProgramSpec, protocol: asyncio.SubprocessProtocol, stderr: int | None = None
) -> asyncio.SubprocessTransport:
    """Start the program as the leader of a process group. Raises OSError, ValueError or HookFailed."""
    if spec.fork is not None:
        program = ProgramRequest(
            command=spec.command, folder=str(spec.folder), env=spec.environ(), sandbox=spec.sandbox
        )
        return await spec.fork(program, protocol, stderr)
    transport, _ = await asyncio.get_running_loop().subprocess_exec(
        lambda: protocol,
        *spec.command,
        stderr=subprocess.PIPE if stderr is None else stderr,
        cwd=spec.folder,
        env=spec.environ(),
        start_new_session=True,
    )
    return transport


def limit_program(pid: int, spec: ProgramSpec) -> None:
    """Set limits, so that the system ends the program before the gateway when memory is short."""
    kernel.restore_descriptor_limit(pid)
    if spec.memory is not None:
        kernel.limit_data(pid, spec.memory + RUNTIME_RESERVE)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, NICE)
    kernel.write_proc_file("oom_score_adj", OOM_SCORE, pid)


def kill_program(transport: asyncio.SubprocessTransport) -> None:
    """Kill the program and its process group, which does not exist yet just after the start."""
    kill_group(transport.get_pid())
    with suppress(ProcessLookupError):
        transport.kill()


def close_pipes(transport: asyncio.SubprocessTransport) -> None:
    """Close the pipes of a program that has ended: a detached child may hold the pipes open, and never read."""
    writer = transport.get_pipe_transport(0)
    assert isinstance(writer, asyncio.WriteTransport)
    if writer.get_write_buffer_size():
        writer.abort()
    transport.close()


EXIT_DELAY = 0.1  # seconds for a program to exit after it closed its stdout
# A program that never answered does not read or write lines, or keeps its answers in a buffer.
SILENCE_HELP = (
    "it has to answer each line with one, and flush it; what reads its input to the end is `protocol: oneshot`"
)
OUTPUT_DELAY = 0.2  # seconds to read a program's output after its end; a child may hold its stdout open for longer


class LastingProgramPipes(asyncio.SubprocessProtocol):
    """The pipes between a lasting program and the peer.

    `broken` reports output that is not a message, `silent` a closed stdout, and `ended` the exit status. A program may
    answer and exit at once: its end counts when all its output has been read.
    """

    transport: asyncio.SubprocessTransport | None = None  # until there is a process
    is_running = has_written = False

    def __init__(
        self, peer: Peer, broken: Callable[[str], None], silent: Callable[[], None], ended: Callable[[int], None]
    ) -> None:
        self._peer = peer
        self._broken = broken
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
        if not self.has_written and b"\n" not in data and (begin := data.lstrip()) and not begin.startswith(b"{"):
            self._broken(f"it wrote {make_bad_message(begin)}")  # now: the end of that line may never come
        self.has_written = True
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
    """The wire to a lasting program; the wire is gone when the program has ended."""

    def __init__(self, spec: ProgramSpec, serve: Capability, tasks: TaskGroup) -> None:
        self._spec = spec
        self._peer = Peer(serve, tasks, self._noticed, self.kill)
        self._pipes = LastingProgramPipes(
            self._peer, self.kill, partial(self.kill, "it closed its stdout"), self._ended
        )
        self._output = HookOutput(spec.log, spec.redact)
        self._calls = ActiveCalls(self._peer, self, self._late, lambda _: None)
        self._why = ""
        self.gone = Disconnection()

    @classmethod
    async def start(cls, spec: ProgramSpec, serve: Capability, tasks: TaskGroup) -> "LastingProgram":
        """Start the program. Raises HookError if the start fails; no process is left then."""
        program = cls(spec, serve, tasks)
        try:
            await program._begin()
        except BaseException as error:
            program._end("it was not started")
            if isinstance(error, OSError | ValueError):
                kind: FailureKind = "short" if is_limit_error(error) else "died"
                raise HookFailed(describe_start_failure(spec, error), kind=kind) from None
            raise
        limit_program(program.pid, spec)
        tasks.start_soon(program._kill_orphans)
        return program

    @property
    def pid(self) -> int:
        return self._pipes.transport.get_pid() if self._pipes.transport else 0

    @property
    def pids(self) -> tuple[int, ...]:
        return (self.pid,)

    def find_obstacle(self) -> str:
        """Return the visible reason why an idle program must not end; "" if the system shows none."""
        if self._peer.is_serving:
            return "it waits for an answer of the gateway"
        if find_descendants({self.pid}):
            return "a process that it started runs"
        return "it has a socket open" if has_sockets(self.pid) else ""

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> HookAnswer:
        if self.gone:
            raise self._failure()
        message = await self._calls.make(name, fields, meta, timeout)
        if message.error is not None:
            raise HookFailed(f"{self._spec.name} says: {message.error.message[:2000]}", kind="raised")
        answer = answer_of(message.result, f"{self._spec.name}: ")
        return answer if meta.decides else unused_part_of(answer)

    async def stop(self, grace: float) -> None:
        """Stop the program: a closed stdin tells the program that no more events come."""
        self._why = self._why or "it was stopped"
        if self._pipes.transport and (stdin := self._pipes.transport.get_pipe_transport(0)):
            stdin.close()
        with anyio.move_on_after(grace):
            await self.gone.wait()
        self.kill("it was stopped")
        with anyio.CancelScope(shield=True):
            await self.gone.wait()

    def dump(self) -> None:
        """Do nothing: a foreign program cannot write its stacks."""

    def free(self) -> None:
        """Do nothing: a foreign program cannot be interrupted."""

    def kill(self, reason: str) -> None:
        self._why = self._why or reason
        if self._pipes.is_running and self._pipes.transport:
            kill_program(self._pipes.transport)

    async def _begin(self) -> None:
        read, write = os.pipe()
        self._output.attach(read)
        try:
            await open_process(self._spec, self._pipes, write)
        finally:
            os.close(write)

    async def _kill_orphans(self) -> None:
        """Kill the processes that the program started and detached."""
        await self.gone.wait()
        await run_in_thread(kill_marked, self._spec.mark)

    def _late(self, why: str) -> HookFailed:
        helps = "" if self._pipes.has_written else f" and wrote nothing; {SILENCE_HELP}"
        return HookFailed(f"{self._spec.name} {why}{helps}", kind="timeout")

    def _noticed(self, message: RpcMessage) -> None:
        """Ignore a message about the process itself; only workers send such messages."""

    def _ended(self, status: int) -> None:
        self._end(self._why or describe_exit(status))

    def _end(self, why: str) -> None:
        self.gone.tell(why, is_orphan(self._pipes.transport))
        self._peer.close(self._failure)
        self._output.close()

    def _failure(self) -> HookFailed:
        return HookFailed(f"{self._spec.name}: {self.gone.reason}", kind="died")


MAX_STDERR_BYTES = 64 << 10  # bytes of its stderr


class ProgramRun(asyncio.SubprocessProtocol):
    """One process of the program, and its output; `over` is set when the process and its output have ended."""

    def __init__(self) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        self.over = anyio.Event()
        self.is_too_long = False

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    def write(self, data: bytes) -> None:
        """Send the whole input; the program need not read it."""
        stdin = self._transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)
        stdin.write(data)
        stdin.close()

    def kill(self) -> None:
        if not self.over.is_set():
            kill_program(self._transport)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.stderr += data
            del self.stderr[:-MAX_STDERR_BYTES]
        elif not self.is_too_long:
            self.stdout += data
            self.is_too_long = len(self.stdout) > MAX_LINE_BYTES
            if self.is_too_long:
                self.kill()

    def process_exited(self) -> None:
        asyncio.get_running_loop().call_later(OUTPUT_DELAY, self._hang_up)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        kill_group(self._transport.get_pid())
        self.over.set()
        self._transport.close()

    def _hang_up(self) -> None:
        self.kill()
        close_pipes(self._transport)


class OneshotProgram:
    """The wire to a program that is started for every event."""

    def __init__(self, spec: ProgramSpec, speech: ProgramFormat | None = None) -> None:
        self._spec = spec
        self._format: ProgramFormat = speech or OwnFormat(spec.is_guard)
        self._running: set[ProgramRun] = set()
        self._idle = anyio.Event()
        self._output = HookOutput(spec.log, spec.redact)
        self.gone = Disconnection()

    @property
    def pids(self) -> tuple[int, ...]:
        """Return the ids of all processes of the program that run now."""
        return tuple(run.pid for run in self._running)

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> HookAnswer:
        if self.gone:
            raise HookFailed(f"{self._spec.name}: {self.gone.reason}", kind="refused")
        plain = msgspec.json.decode(fields) if isinstance(fields, bytes) else fields
        try:
            with anyio.fail_after(timeout):
                data = await self._format.build_input(name, plain, str(self._spec.folder), meta.answers or {})
                if data is None:
                    return HookAnswer()
                code, stdout, stderr = await self._run(data)
        except TimeoutError:
            raise HookFailed(f"{self._spec.name} took more than {timeout:g} s", kind="timeout") from None
        text = stderr.decode("utf-8", "replace")
        if text:
            self._output.note(text)
        answer = self._format.read_answer(name, plain, meta, (code, stdout, text))
        if stdout.strip() and answer == HookAnswer():
            self._output.note(stdout.decode("utf-8", "replace"))
        return answer if meta.decides else unused_part_of(answer)

    async def stop(self, grace: float) -> None:
        self.gone.tell("it was stopped")
        with anyio.move_on_after(grace):
            while self._running:
                await self._idle.wait()
        for run in self._running:
            run.kill()
        self._output.close()
        await run_in_thread(kill_marked, self._spec.mark)

    async def _run(self, data: bytes) -> tuple[int, bytes, bytes]:
        """Run the program once; return its exit code, its stdout, and the end of its stderr."""
        run, spec = ProgramRun(), msgspec.structs.replace(self._spec, mark=make_mark(self._spec.mark))
        try:
            transport = await open_process(spec, run)
        except (OSError, ValueError) as error:
            raise HookFailed(describe_start_failure(spec, error), kind="short") from None
        limit_program(transport.get_pid(), spec)
        self._running.add(run)
        try:
            run.write(data)
            await run.over.wait()
        finally:
            run.kill()
            with anyio.CancelScope(shield=True):
                await run.over.wait()
                await run_in_thread(kill_marked, spec.mark)  # detached processes
            self._running.discard(run)
            self._idle.set()
            self._idle = anyio.Event()
        if is_orphan(transport):
            raise HookFailed(f"{spec.name} ended with the fork server", kind="orphaned")
        if run.is_too_long:
            raise HookFailed(f"it wrote more than {MAX_LINE_BYTES >> 20} MB to stdout", kind="garbled")
        return transport.get_returncode() or 0, bytes(run.stdout), bytes(run.stderr)
