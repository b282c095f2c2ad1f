"""The gateway's end of the desk socket: one caller, one event of a program, one answer in the program's own form.

A caller sends a line (the program, its event, whether a person sits there, the length) and the bytes of the program as
they came. It gets a line (an exit code and a length) and a text. A caller that hangs up withdraws its question.
"""

import logging
import socket
from typing import NamedTuple

import anyio
import anyio.abc

from gateway.desk.call import DeskCall, decode_event
from gateway.desk.programs import PROGRAMS, make_permission_answer
from gateway.desk.questions import DeskQuestions
from gateway.worker import kernel
from gateway.worker.process_tree import read_process

LONGEST_HEAD = 200
LONGEST_BODY = 8_000_000
UNREADABLE = "hermes-gateway cannot read this call"
REFUSED = "An owner refused this in a chat. Go on without it, or ask them."
NOBODY = "No owner allowed this in time. Go on without it."

log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """The exit code of the program's command, and its text. Empty: as if nothing were connected."""

    code: int = 0
    text: str = ""


class DeskCaller:
    """A connection, read as far as it is needed."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._socket: socket.socket = stream.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610 - no database
        self._data = bytearray()
        self.has_left = False

    def identify(self) -> str:
        """Return the process at the other end by its number and its start: no other process ever has both."""
        peer = kernel.find_peer(self._socket)
        process = read_process(peer[0]) if peer else None
        return f"{process.pid}/{process.started}" if process else f"unknown {id(self)}"

    async def read(self) -> tuple[str, str, bytes]:
        """Return the program, its event and the bytes that it sent.

        Raises:
            ValueError: the caller speaks another language, or sends too much.
        """
        while (end := self._data.find(b"\n")) < 0:
            if len(self._data) > LONGEST_HEAD:
                raise ValueError("no first line")
            await self._receive()
        program, event, _attended, length = self._data[:end].decode().split(" ")
        if int(length) > LONGEST_BODY:
            raise ValueError(f"{length} bytes are too much")
        del self._data[: end + 1]
        while len(self._data) < int(length):
            await self._receive()
        return program, event, bytes(self._data)

    async def answer(self, answer: Answer) -> None:
        text = answer.text.encode()
        await self._stream.send(f"{answer.code} {len(text)}\n".encode() + text)

    async def wait_until_left(self, scope: anyio.CancelScope) -> None:
        """Cancel the scope when the caller hangs up."""
        try:
            await self._receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            self.has_left = True
        scope.cancel()

    async def _receive(self) -> None:
        await anyio.wait_readable(self._socket)  # as in the control socket: its own wait is not safely cancelled
        self._data += await self._stream.receive()


async def answer_caller(questions: DeskQuestions, stream: anyio.abc.SocketStream) -> None:
    """Answer one caller."""
    caller = DeskCaller(stream)
    try:
        program, _, body = await caller.read()
        call = DeskCall(PROGRAMS[program], decode_event(body), caller.identify())
    except (ValueError, KeyError) as error:
        log.warning("desk: a call cannot be read: %s", error)
        await caller.answer(Answer(2, UNREADABLE))
        return
    answer = Answer()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(caller.wait_until_left, tasks.cancel_scope)
        answer = await find_answer(questions, call)
        tasks.cancel_scope.cancel()
    if caller.has_left:
        await questions.withdraw(call)
    else:
        await caller.answer(answer)


async def find_answer(questions: DeskQuestions, call: DeskCall) -> Answer:
    """Return what the program gets: nothing, unless a person or a rule has decided."""
    if call.given.hook_event_name in call.program.ends:
        await questions.end(call)
    elif call.given.hook_event_name == call.program.question:
        return await ask_owner(questions, call)
    return Answer()


async def ask_owner(questions: DeskQuestions, call: DeskCall) -> Answer:
    """Put the program's own question to the owners."""
    answered = await questions.ask(call)
    match answered.outcome:
        case "done":
            return Answer(0, make_permission_answer(is_allowed=True))
        case "refused":
            return Answer(0, make_permission_answer(is_allowed=False, reason=REFUSED))
        case "withdrawn":
            return Answer()
    if questions.read_settings().unanswered == "deny":
        return Answer(0, make_permission_answer(is_allowed=False, reason=NOBODY))
    return Answer()
