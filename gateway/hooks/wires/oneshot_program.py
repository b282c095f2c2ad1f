"""A hook that is a program, started anew for each event.

It reads one object from stdin, and answers by its exit code and by what stands on its stdout.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

import anyio
import msgspec

from gateway.hooks.wires.codec import MAX_LINE_BYTES
from gateway.hooks.wires.oneshot_answer import build_input, parse_answer
from gateway.hooks.wires.output import HookOutput
from gateway.hooks.wires.program import ProgramSpec, close_pipes, describe_start_failure, kill_group, limit_program
from gateway.hooks.wires.wire import CallMeta, Disconnection, HookAnswer, HookFailed

PIPE_CLOSE_DELAY = 0.2  # seconds that what a program left in the background may still hold its stdout
MAX_STDERR_BYTES = 64 << 10  # bytes of its stderr

_encode = msgspec.json.Encoder().encode


class ProgramRun(asyncio.SubprocessProtocol):
    """One process of the program, and what it wrote; `over` when it has ended and all of that is here."""

    def __init__(self) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        self.over = anyio.Event()
        self.is_too_long = False

    def give(self, data: bytes) -> None:
        """All that it can read; it need not."""
        stdin = self._transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)
        stdin.write(data)
        stdin.close()

    def kill(self) -> None:
        if not self.over.is_set():
            kill_group(self._transport.get_pid())

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
        asyncio.get_running_loop().call_later(PIPE_CLOSE_DELAY, self._hang_up)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        kill_group(self._transport.get_pid())
        self.over.set()
        self._transport.close()

    def _hang_up(self) -> None:
        self.kill()
        close_pipes(self._transport)


class ProgramDialect(Protocol):
    """What a program reads and what its end means, where it was not written for us. `given` is None: not this time."""

    def given(self, name: str, fields: Mapping[str, Any], folder: str, answers: Mapping[str, Any]) -> bytes | None: ...

    def meant(
        self, name: str, fields: Mapping[str, Any], meta: CallMeta, ended: tuple[int, bytes, str]
    ) -> HookAnswer: ...


class OwnDialect:
    """Our own events, with the names beside them that scripts written for Claude Code read."""

    def __init__(self, is_guard: bool) -> None:
        self._is_guard = is_guard

    def given(self, name: str, fields: Mapping[str, Any], folder: str, answers: Mapping[str, Any]) -> bytes:
        return _encode(build_input(name, fields, folder, answers))

    def meant(self, name: str, fields: Mapping[str, Any], meta: CallMeta, ended: tuple[int, bytes, str]) -> HookAnswer:  # noqa: ARG002
        code, stdout, stderr = ended
        return parse_answer(name, code, stdout, stderr, self._is_guard)


class OneshotProgram:
    """The wire to a program that is started for every event."""

    def __init__(self, spec: ProgramSpec, dialect: ProgramDialect | None = None) -> None:
        self._spec = spec
        self._dialect: ProgramDialect = dialect or OwnDialect(spec.is_guard)
        self._running: set[ProgramRun] = set()
        self._idle = anyio.Event()
        self._output = HookOutput(spec.log)
        self.gone = Disconnection()

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> HookAnswer:
        if self.gone:
            raise HookFailed(f"{self._spec.name}: {self.gone.reason}", kind="refused")
        plain = msgspec.json.decode(fields) if isinstance(fields, bytes) else fields
        given = self._dialect.given(name, plain, str(self._spec.folder), meta.answers or {})
        if given is None:
            return HookAnswer()
        try:
            with anyio.fail_after(timeout):
                code, stdout, stderr = await self._run(given)
        except TimeoutError:
            raise HookFailed(f"{self._spec.name} took more than {timeout:g} s", kind="timeout") from None
        text = stderr.decode("utf-8", "replace")
        if text:
            self._output.note(text)
        answer = self._dialect.meant(name, plain, meta, (code, stdout, text))
        if stdout.strip() and answer == HookAnswer():
            self._output.note(stdout.decode("utf-8", "replace"))
        return answer if meta.decides else HookAnswer()

    async def stop(self, grace: float) -> None:
        self.gone.tell("it was stopped")
        with anyio.move_on_after(grace):
            while self._running:
                await self._idle.wait()
        for run in self._running:
            run.kill()
        self._output.close()

    async def _run(self, given: bytes) -> tuple[int, bytes, bytes]:
        """Its exit code, its stdout, and the end of its stderr."""
        spec, run = self._spec, ProgramRun()
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: run, *spec.command, cwd=spec.folder, env=spec.environ(), start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise HookFailed(describe_start_failure(spec, error), kind="died") from None
        limit_program(transport.get_pid(), spec)
        self._running.add(run)
        try:
            run.give(given)
            await run.over.wait()
        finally:
            run.kill()
            with anyio.CancelScope(shield=True):
                await run.over.wait()
            self._running.discard(run)
            self._idle.set()
            self._idle = anyio.Event()
        if run.is_too_long:
            raise HookFailed(f"it wrote more than {MAX_LINE_BYTES >> 20} MB to stdout", kind="garbled")
        return transport.get_returncode() or 0, bytes(run.stdout), bytes(run.stderr)
