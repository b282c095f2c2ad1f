"""The gateway's end of the desk socket: one caller, one event of a program, one answer in the program's own form.

A caller sends a line (the program, its event, whether a person sits there, the length) and the bytes of the program as
they came. It gets a line (an exit code and a length) and a text. A caller that hangs up withdraws its question.
"""

import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio
import anyio.abc

from gateway.control.callers import find_user
from gateway.desk.call import DeskCall, decode_event
from gateway.desk.decision import Answer, deny, refuse
from gateway.desk.decision import Desk as Desk
from gateway.desk.history import DeskHistory as DeskHistory
from gateway.desk.programs import PROGRAMS, Program
from gateway.desk.questions import DeskQuestions as DeskQuestions
from gateway.worker import kernel
from gateway.worker.process_tree import ProcessInfo, find_ancestors, read_process

LONGEST_HEAD = 200
LONGEST_BODY = 8_000_000
BEAT_SECONDS = 10.0
READ_SECONDS = 10.0  # the command has read everything from the program before it connects
INTERPRETERS = ("node", "bun", "deno", "python")  # the words behind one say what it runs
UNREADABLE = "This call cannot be read."
BELOW = "The gateway has started this itself, and puts no questions for it."

AddPrograms: TypeAlias = Callable[[Sequence[ProcessInfo], str], Awaitable[None]]

log = logging.getLogger(__name__)


def parse_first_line(line: bytes | bytearray) -> tuple[Program, str, bool, int]:
    """Return the program, its event, whether a person sits there, and the length. Raises ValueError."""
    name, event, attended, length = line.decode().split(" ")
    if name not in PROGRAMS:
        raise ValueError(f"unknown program {name}")
    return PROGRAMS[name], event, attended == "1", int(length)


def format_answer(answer: Answer) -> bytes:
    text = answer.text.encode()
    return f"{answer.code} {len(text)}\n".encode() + text


class DeskCaller:
    """A connection, read as far as it is needed."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._socket: socket.socket = stream.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610 - no database
        self._data = bytearray()
        self._refuse: Callable[[str], Answer] = deny
        self.has_left = False

    @property
    def process(self) -> ProcessInfo | None:
        """The process at the other end; by its number and its start it differs from any other."""
        peer = kernel.find_peer(self._socket)
        return read_process(peer[0]) if peer else None

    async def read_call(self) -> DeskCall:
        """Return the call.

        Raises:
            ValueError: the caller speaks another language, or sends too much.
        """
        while (end := self._data.find(b"\n")) < 0:
            if len(self._data) > LONGEST_HEAD:
                raise ValueError("no first line")
            await self._receive()
        program, event, is_attended, length = parse_first_line(self._data[:end])
        self._refuse = partial(refuse, program, event)
        if length > LONGEST_BODY:
            raise ValueError(f"{program.name}, {length} bytes")
        del self._data[: end + 1]
        while len(self._data) < length:
            await self._receive()
        process = self.process
        asker = process.mark if process else f"unknown {secrets.token_hex(16)}"
        given = decode_event(self._data)
        began = process.started if process else 0
        return DeskCall(program, given, asker, find_user(self._socket), is_attended, began)

    async def answer(self, answer: Answer) -> None:
        await self._stream.send(format_answer(answer))

    async def beat(self) -> None:
        """Send signs of life until cancelled: a gateway that hangs sends none."""
        with suppress(anyio.BrokenResourceError):
            while True:
                await anyio.sleep(BEAT_SECONDS)
                await self._stream.send(b"\n")

    async def refuse(self, reason: str) -> None:
        """Deny the call for this reason, if it is one that can be denied."""
        await self.answer(self._refuse(reason))

    async def wait_until_left(self, scope: anyio.CancelScope) -> None:
        """Cancel the scope when the caller hangs up, or sends more than its call."""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await self._receive()
        self.has_left = True
        scope.cancel()

    async def _receive(self) -> None:
        await anyio.wait_readable(self._socket)  # as in the control socket: its own wait is not safely cancelled
        self._data += await self._stream.receive()


async def answer_caller(desk: Desk, stream: anyio.abc.SocketStream, add_programs: AddPrograms) -> None:
    """Answer one caller; `add_programs` receives the processes of the program that started it."""
    caller = DeskCaller(stream)
    try:
        with anyio.fail_after(READ_SECONDS):
            call = await caller.read_call()
    except (ValueError, TimeoutError) as error:
        log.warning("desk: a call cannot be read: %s", error)
        await caller.refuse(UNREADABLE)
        return
    process = caller.process
    if process and os.getpid() in find_ancestors(process.pid):
        await caller.refuse(BELOW)
        return
    if process:
        await add_programs(find_programs(call.program, process), call.program.title)
    answer = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(caller.wait_until_left, tasks.cancel_scope)
        tasks.start_soon(caller.beat)
        answer = await desk.find_answer(call)
        tasks.cancel_scope.cancel()
    if caller.has_left:
        await desk.questions.withdraw(call)
    await (caller.answer(answer) if answer else caller.refuse(UNREADABLE))  # it sent more than its call


def find_programs(program: Program, asker: ProcessInfo) -> list[ProcessInfo]:
    """Return the processes above this command that are called as the program is: the program, and scripts of its own.

    Others are above a person's terminal, too. A process from which this gateway descends counts if no other one does:
    a program may have started the gateway that it asks.
    """
    found = [pid for pid in find_ancestors(asker.pid) if program.name in describe_process(pid)]
    shared = {os.getpid(), *find_ancestors(os.getpid())}
    own = [pid for pid in found if pid not in shared] or found[:1]
    return [process for process in map(read_process, own) if process]


def describe_process(pid: int) -> str:
    """Return the file that a process runs, its first word, and the others too if it is an interpreter; "" if unknown.

    The person's home is not part of it: a person may be called as a program is.
    """
    place, file = Path("/proc", str(pid)), ""
    with suppress(OSError):  # hidden if it has rights that we do not have
        file = str((place / "exe").readlink())
    try:
        words = os.fsdecode((place / "cmdline").read_bytes()).split("\0")
    except OSError:
        words = []
    is_interpreter = Path(file).name.startswith(INTERPRETERS)
    return " ".join([file, *(words if is_interpreter else words[:1])]).replace(f"{Path.home()}/", "").lower()
