"""The gateway's end of the control socket. A request runs as long as its caller stays; a caller that leaves ends it.

The socket is in a directory that only its owner may enter, so every caller is the owner: it needs no token.
"""

import asyncio
import json
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import anyio.abc
import msgspec

from gateway.control import LINE_LIMIT
from gateway.control.listener import CallerListener
from gateway.control.params import describe_params
from gateway.errors import ExitCode, GatewayError
from gateway.records.activity import CALLER, Caller
from gateway.verbs import Notify, Verb
from gateway.worker.json_decoder import JsonDecoder

log = logging.getLogger(__name__)

MAX_OPEN_REQUESTS = 64  # requests of one caller that are answered at once
SURROGATES = re.compile("[\ud800-\udfff]")
INVALID_REQUEST, UNKNOWN_VERB, INVALID_PARAMS, TOO_MANY_REQUESTS, REFUSED = -32600, -32601, -32602, -32000, -32001
SURROGATE_ESCAPE = re.compile(rb"(?i)\\ud[89a-f]..")
HALF_A_PAIR = "a text has one half of a surrogate pair, which is not a character: leave it out"
TOO_LONG = f"a request has {LINE_LIMIT >> 20} MB at the most"

Judge: TypeAlias = Callable[[str], str]
"""Returns why this verb is refused; "": it is allowed."""
JudgeCaller: TypeAlias = Callable[[socket.socket], tuple[Caller, Judge]]
AnswerVerb: TypeAlias = Callable[[Any, Notify], Awaitable[Any]]


class VerbAnswer(msgspec.Struct, frozen=True):
    """A verb, and who answers it; other parameters than its own are refused before anybody answers."""

    verb: Verb
    answer: AnswerVerb


class ControlRequest(msgspec.Struct):
    """A request of a caller."""

    id: int
    method: str
    params: dict[str, Any] = {}


_decode_request = JsonDecoder[ControlRequest](ControlRequest).decode


def describe_failure(line: bytes, error: ValueError) -> tuple[int | None, str]:
    """Return the number of an unreadable request, and the reason: the decoder takes half of a pair for a text's end."""
    with suppress(ValueError):
        return _decode_request(SURROGATE_ESCAPE.sub(b"?", line)).id, HALF_A_PAIR
    return None, str(error)


class ControlServer(msgspec.Struct, eq=False):
    """Serves a table of verbs on a Unix socket. `redact` removes secrets from their errors.

    `judge` identifies the caller of a connection, and the verbs that it may not call; without it all are allowed.
    `write_refusal` receives each refusal.
    """

    path: Path
    verbs: Mapping[str, VerbAnswer]
    redact: Callable[[str], str] = str
    judge: JudgeCaller | None = None
    write_refusal: Callable[[str], Awaitable[None]] | None = None

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        self.path.unlink(missing_ok=True)  # left by a process that died: the holder of the home's lock owns the name
        try:
            async with await anyio.create_unix_listener(self.path, mode=0o600) as accepting:
                listener = CallerListener(accepting, make_refusal)
                task_status.started()
                await listener.serve(self._connection)
        finally:
            self.path.unlink(missing_ok=True)

    async def _connection(self, stream: anyio.abc.SocketStream) -> None:
        caller = ControlConnection(stream)
        try:
            async with stream, anyio.create_task_group() as tasks:
                if await self._is_known(caller, stream):
                    await self._read(caller, stream, tasks)
                tasks.cancel_scope.cancel()
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
            log.debug("a caller left the control socket in the middle of an answer")
        except* Exception:  # one caller's fault: all others stay connected
            log.exception("control: a connection failed")

    async def _is_known(self, caller: "ControlConnection", stream: anyio.abc.SocketStream) -> bool:
        """Return True if the caller is answered at all."""
        try:
            if self.judge:
                connection = stream.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610 - no database
                who, caller.refusal_of = self.judge(connection)
                CALLER.set(who)  # for the requests of this connection alone: it has a task of its own
        except GatewayError as error:
            await caller.fail(None, INVALID_REQUEST, str(error))
            return False
        return True

    async def _read(
        self, caller: "ControlConnection", stream: anyio.abc.SocketStream, tasks: anyio.abc.TaskGroup
    ) -> None:
        """Start the requests. Refusals are sent from here: a caller that never reads is not read any further."""
        reader = LineReader(stream, LINE_LIMIT)
        with suppress(anyio.EndOfStream):
            while True:
                line = await reader.receive()
                if line is None:
                    await caller.fail(None, INVALID_REQUEST, TOO_LONG)
                    continue
                try:
                    request = _decode_request(line)
                except ValueError as error:  # also bytes that are not text
                    number, why = describe_failure(line, error)
                    await caller.fail(number, INVALID_REQUEST, f"not a request: {why}")
                    continue
                if caller.open < MAX_OPEN_REQUESTS:
                    caller.open += 1
                    tasks.start_soon(self._serve, caller, request)
                else:
                    await caller.fail(
                        request.id, TOO_MANY_REQUESTS, f"{MAX_OPEN_REQUESTS} requests are open: wait for an answer"
                    )

    async def _serve(self, caller: "ControlConnection", request: ControlRequest) -> None:
        try:
            if refusal := caller.refusal_of(request.method):
                log.warning("control: %s", refusal)
                if self.write_refusal and request.method in self.verbs:
                    await self.write_refusal(request.method)
                await caller.fail(request.id, REFUSED, refusal)
                return
            found = self.verbs.get(request.method)
            if found is None:
                await caller.fail(
                    request.id, UNKNOWN_VERB, f"this gateway knows no `{request.method}`; is it of another version?"
                )
                return
            try:
                params = msgspec.convert(request.params, found.verb.params)
            except (msgspec.ValidationError, OverflowError) as error:
                expected = describe_params(found.verb.params)
                await caller.fail(request.id, INVALID_PARAMS, self.redact(f"{request.method}: {error}; {expected}"))
                return
            result = await found.answer(params, partial(caller.notify, request.id))
            await caller.say({"id": request.id, "result": result})
        except GatewayError as error:
            await caller.fail(request.id, int(error.exit), self.redact(str(error)))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise
        except Exception:  # a fault in one verb is answered and logged; the daemon goes on
            log.exception("control: %s failed", request.method)
            await caller.fail(
                request.id, int(ExitCode.FAILED), f"{request.method} failed inside the gateway; see its log"
            )
        finally:
            caller.open -= 1


class LineReader:
    """Lines out of a stream. One that is too long is None, as soon as that is certain; the rest of it is passed."""

    def __init__(self, stream: anyio.abc.SocketStream, limit: int) -> None:
        self._stream = stream
        self._socket = stream.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610 - no database
        self._limit = limit
        self._buffer = bytearray()
        self._is_passing = False  # in the middle of a line that was too long

    async def receive(self) -> bytes | None:
        """Return the next line. Raises EndOfStream."""
        looked = 0
        while True:
            end = self._buffer.find(b"\n", looked)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                if not self._is_passing:
                    return line if end <= self._limit else None
                self._is_passing = False
                looked = 0
                continue
            if self._is_passing:
                self._buffer.clear()
            elif len(self._buffer) > self._limit:
                self._is_passing = True
                return None
            looked = len(self._buffer)
            # The stream's own wait is an error of the loop when it is cancelled in the step in which data
            # comes.
            await anyio.wait_readable(self._socket)
            self._buffer += await self._stream.receive()


class ControlConnection(msgspec.Struct, eq=False):
    """One connection's writing side; lines never mix. `open`: its requests that are not answered yet."""

    _stream: anyio.abc.SocketStream
    open: int = 0
    refusal_of: Judge = lambda _verb: ""
    _lock: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)

    async def say(self, message: dict[str, Any]) -> None:
        data = encode_line(message)
        async with self._lock:
            await self._stream.send(data)

    async def fail(self, request: int | None, code: int, message: str) -> None:
        await self.say(make_error(request, code, message))

    async def notify(self, request: int, method: str, params: Any) -> None:
        await self.say({"method": method, "params": params, "request": request})


def make_refusal(why: str) -> bytes:
    """Encode the refusal of a caller."""
    return encode_line(make_error(None, TOO_MANY_REQUESTS, why))


def make_error(request: int | None, code: int, message: str) -> dict[str, Any]:
    return {"id": request, "error": {"code": code, "message": message}}


def encode_line(message: dict[str, Any]) -> bytes:
    return encode_message({"jsonrpc": "2.0"} | message) + b"\n"


def encode_message(message: Any) -> bytes:
    """Encode as JSON. Values from hooks may be anything, and file names need not be text: such bytes are spelt out."""
    try:
        return msgspec.json.encode(message, enc_hook=str)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(message, enc_hook=str), ensure_ascii=False)
        return SURROGATES.sub(lambda found: rf"\\u{ord(found[0]):04x}", text).encode()
