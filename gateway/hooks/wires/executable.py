"""A hook that is a program of any language: lasting, a JSON-RPC message a line on stdin and stdout; or one-shot.

A lasting program is asked, and may ask, as a worker does. A one-shot program is started for each event, reads one
object from stdin, and answers by its exit code and by what stands on its stdout. Either leads a process group of its
own, which ends with it; sees the environment that its manifest declares; and writes to its log by stderr.
"""

import asyncio
import os
import resource
import signal
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from gateway.errors import HookError
from gateway.events import Question, outcome_from
from gateway.hooks.wires.codec import LONGEST, Message, fields_of
from gateway.hooks.wires.output import Output
from gateway.hooks.wires.overtime import Overtime
from gateway.hooks.wires.peer import Peer
from gateway.hooks.wires.verdict import input_for, verdict
from gateway.hooks.wires.wire import Answer, CallMeta, Capability, Gone, HookFailed

LINGER = 0.2  # seconds that what a program left in the background may still hold its stdout
ENDING = 0.1  # seconds that a program which closed its stdout has to end by itself
KEPT = 64 << 10  # bytes of a one-shot program's stderr
CHUNK = 1 << 16

_encode = msgspec.json.Encoder().encode


class CommandSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Which program, and what it finds around it."""

    name: str
    command: tuple[str, ...]
    folder: Path
    log: Path
    env: Mapping[str, str] = {}  # all of it: nothing else is there
    options: Mapping[str, Any] = {}
    is_guard: bool = False  # `on_error: deny`: what cannot be understood is a failure
    memory: int | None = 512 << 20
    nice: int = 5

    def environ(self) -> dict[str, str]:
        """HOOK_OPTIONS is how a program of any language comes by its options."""
        return {**self.env, "HOOK_NAME": self.name, "HOOK_OPTIONS": _encode(self.options).decode()}


class Executable(asyncio.SubprocessProtocol):
    """The wire to a lasting program; it is gone when the program has ended."""

    def __init__(self, spec: CommandSpec, serve: Capability, tasks: TaskGroup) -> None:
        self._spec = spec
        self._peer = Peer(serve, tasks, self._noticed, self.kill)
        self._output = Output(spec.log)
        self._running: dict[int, Overtime] = {}
        self._transport: asyncio.SubprocessTransport | None = None
        self._why = ""
        self.gone = Gone()

    @classmethod
    async def start(cls, spec: CommandSpec, serve: Capability, tasks: TaskGroup) -> "Executable":
        """Raises HookError when the program cannot be started."""
        program = cls(spec, serve, tasks)
        read, write = os.pipe()
        program._output.attach(read)
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: program,
                *spec.command,
                stderr=write,
                cwd=spec.folder,
                env=spec.environ(),
                start_new_session=True,
            )
        except BaseException as error:
            program._output.close()
            if isinstance(error, OSError | ValueError):
                raise HookError(_not_started(spec, error)) from None
            raise
        finally:
            os.close(write)
        restrain(transport.get_pid(), spec)
        return program

    @property
    def pid(self) -> int:
        return self._transport.get_pid() if self._transport else 0

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> Answer:
        if self.gone:
            raise self._failure()
        number, pending = self._peer.call(name, fields_of(fields), _encode(meta), self._over)
        running = self._running[number] = Overtime(self, partial(self._peer.tell, "$cancel", {"id": number}), timeout)
        try:
            message = await pending.future
        except asyncio.CancelledError:
            running.abandon()
            raise
        except HookFailed as failed:
            raise self._late(running) if running.is_late else failed from None
        if running.is_late:
            raise self._late(running)
        return _answer(self._spec.name, message, meta)

    async def stop(self, grace: float) -> None:
        """Closing its stdin tells a program that no more will come."""
        self._why = self._why or "it was stopped"
        if self._transport and (stdin := self._transport.get_pipe_transport(0)):
            stdin.close()
        with anyio.move_on_after(grace):
            await self.gone.wait()
        self.kill("it was stopped")
        with anyio.CancelScope(shield=True):
            await self.gone.wait()

    # What `Overtime` and `Peer` ask for.

    def dump(self) -> None:
        """A foreign program cannot say where it hangs."""

    def free(self) -> None:
        """Nor be made to let go."""

    def kill(self, reason: str) -> None:
        self._why = self._why or reason
        if self._transport and not self.gone:
            kill_group(self._transport.get_pid())

    def _over(self, number: int) -> None:
        self._running.pop(number).end()

    def _late(self, running: Overtime) -> HookFailed:
        return HookFailed(f"{self._spec.name} {running.why}", kind="timeout")

    def _noticed(self, message: Message) -> None:
        """It has nothing to tell about the wire itself."""

    # What asyncio tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        reader, writer = transport.get_pipe_transport(1), transport.get_pipe_transport(0)
        assert isinstance(reader, asyncio.ReadTransport)
        assert isinstance(writer, asyncio.WriteTransport)
        self._peer.attach(reader, writer)

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - stdout is the only pipe read here
        self._peer.received(data)

    def pause_writing(self) -> None:
        self._peer.choke()

    def resume_writing(self) -> None:
        self._peer.ease()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        if fd == 1:
            asyncio.get_running_loop().call_later(ENDING, self.kill, "it closed its stdout")

    def process_exited(self) -> None:
        assert self._transport
        code = self._transport.get_returncode() or 0
        kill_group(self._transport.get_pid())
        how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
        self.gone.tell(self._why or how)
        self._peer.close(self._failure)
        self._output.close()
        self._transport.close()

    def _failure(self) -> HookFailed:
        return HookFailed(f"{self._spec.name}: {self.gone.reason}", kind="died")


class Oneshot:
    """The wire to a program that is started for every event."""

    def __init__(self, spec: CommandSpec) -> None:
        self._spec = spec
        self._running: set[int] = set()
        self._idle = anyio.Event()
        self._output = Output(spec.log)
        self.gone = Gone()

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> Answer:
        if self.gone:
            raise HookFailed(f"{self._spec.name}: {self.gone.reason}", kind="refused")
        plain = msgspec.json.decode(fields) if isinstance(fields, bytes) else fields
        given = _encode(input_for(name, plain, str(self._spec.folder), meta.answers or {}))
        try:
            with anyio.fail_after(timeout):
                code, stdout, stderr = await self._run(given)
        except TimeoutError:
            raise HookFailed(f"{self._spec.name} took more than {timeout:g} s", kind="timeout") from None
        text = stderr.decode("utf-8", "replace")
        if text:
            self._output.note(text)
        answer = verdict(name, code, stdout, text, self._spec.is_guard)
        if stdout.strip() and answer == Answer():
            self._output.note(stdout.decode("utf-8", "replace"))
        return answer if meta.decides else Answer()

    async def stop(self, grace: float) -> None:
        self.gone.tell("it was stopped")
        with anyio.move_on_after(grace):
            while self._running:
                await self._idle.wait()
        for pid in self._running:
            kill_group(pid)
        self._output.close()

    async def _run(self, given: bytes) -> tuple[int, bytes, bytes]:
        spec = self._spec
        try:
            process = await anyio.open_process(
                spec.command, cwd=spec.folder, env=spec.environ(), start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise HookFailed(_not_started(spec, error), kind="died") from None
        restrain(process.pid, spec)
        self._running.add(process.pid)
        try:
            return await _spoken_with(process, given)
        finally:
            kill_group(process.pid)
            self._running.discard(process.pid)
            self._idle.set()
            self._idle = anyio.Event()
            with anyio.CancelScope(shield=True):
                await process.aclose()


async def _spoken_with(process: anyio.abc.Process, given: bytes) -> tuple[int, bytes, bytes]:
    """Its exit code, its stdout, and the end of its stderr."""
    stdout, stderr = bytearray(), bytearray()

    async def write() -> None:
        assert process.stdin
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.send(given)
        await process.stdin.aclose()

    async def read() -> None:
        assert process.stdout
        async for part in process.stdout:
            stdout.extend(part)
            if len(stdout) > LONGEST:
                raise HookFailed(f"it wrote more than {LONGEST >> 20} MB to stdout", kind="garbled")

    async def hear() -> None:
        assert process.stderr
        async for part in process.stderr:
            stderr.extend(part)
            del stderr[: max(0, len(stderr) - KEPT)]

    try:
        async with anyio.create_task_group() as tasks:
            for task in (write, read, hear):
                tasks.start_soon(task)
            code = await process.wait()
            tasks.cancel_scope.deadline = anyio.current_time() + LINGER
    except* HookFailed as failed:
        raise failed.exceptions[0] from None
    return code, bytes(stdout), bytes(stderr)


def _answer(name: str, message: Message, meta: CallMeta) -> Answer:
    if message.error is not None:
        raise HookFailed(f"{name} says: {message.error.message[:2000]}", kind="raised")
    result = message.result
    try:
        outcome = outcome_from(result)
    except (TypeError, ValueError) as error:
        raise HookFailed(f"{name}: {error}", kind="garbled") from None
    if not meta.decides:
        return Answer()
    return Answer(ask=outcome) if isinstance(outcome, Question) else Answer(result=result)


def _not_started(spec: CommandSpec, error: Exception) -> str:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{spec.name}: {spec.command[0]} cannot be started: {why}; see that it is there and executable"


def restrain(pid: int, spec: CommandSpec) -> None:
    """When the machine runs short, the program goes before the gateway; where the system has means for that."""
    with suppress(OSError, ValueError):
        if spec.memory is not None:
            resource.prlimit(pid, resource.RLIMIT_DATA, (spec.memory, spec.memory))
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, spec.nice)
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("500")


def kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
