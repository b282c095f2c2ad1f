"""The gateway's end of the control socket. A request runs as long as its caller stays; a caller that leaves ends it.

The socket lies in a directory that only its owner may enter, so whoever reaches it is the owner: no token.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import anyio.abc
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from gateway.errors import Exit, GatewayError

log = logging.getLogger(__name__)

LINE_LIMIT = 8 << 20

Notify: TypeAlias = Callable[[str, Any], Awaitable[None]]
Verb: TypeAlias = Callable[[dict[str, Any], Notify], Awaitable[Any]]


class Request(msgspec.Struct):
    """What a caller sends."""

    id: int
    method: str
    params: dict[str, Any] = {}


class ControlServer:
    """Serves a table of verbs on a Unix socket."""

    def __init__(self, path: Path, verbs: Mapping[str, Verb]) -> None:
        self.path = path
        self.verbs = verbs

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        self.path.unlink(missing_ok=True)  # of a process that died: whoever holds the home's lock owns the name
        listener = await anyio.create_unix_listener(self.path, mode=0o600)
        task_status.started()
        try:
            async with listener:
                await listener.serve(self._connection)
        finally:
            self.path.unlink(missing_ok=True)

    async def _connection(self, stream: anyio.abc.SocketStream) -> None:
        caller = Caller(stream)
        try:
            async with stream, anyio.create_task_group() as tasks:
                async for line in lines(stream):
                    tasks.start_soon(self._answer, caller, line)
                tasks.cancel_scope.cancel()
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
            log.debug("a caller left the control socket in the middle of an answer")

    async def _answer(self, caller: "Caller", line: bytes) -> None:
        try:
            request = msgspec.json.decode(line, type=Request)
        except msgspec.MsgspecError as error:
            await caller.say({"id": None, "error": {"code": -32600, "message": f"not a request: {error}"}})
            return
        verb = self.verbs.get(request.method)
        if verb is None:
            await caller.fail(
                request.id, -32601, f"this gateway knows no `{request.method}`; is it of another version?"
            )
            return
        try:
            result = await verb(request.params, caller.notifier(request.id))
        except GatewayError as error:
            await caller.fail(request.id, int(error.exit), str(error))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise
        except Exception:  # a fault in one verb is answered and logged; the daemon goes on
            log.exception("control: %s failed", request.method)
            await caller.fail(request.id, int(Exit.FAILED), f"{request.method} failed inside the gateway; see its log")
        else:
            await caller.say({"id": request.id, "result": result})


class Caller:
    """One connection's writing side; lines never mix."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._lock = anyio.Lock()

    async def say(self, message: dict[str, Any]) -> None:
        data = (
            msgspec.json.encode({"jsonrpc": "2.0"} | message, enc_hook=str) + b"\n"
        )  # what hooks put in may be anything
        async with self._lock:
            await self._stream.send(data)

    async def fail(self, request: int, code: int, message: str) -> None:
        await self.say({"id": request, "error": {"code": code, "message": message}})

    def notifier(self, request: int) -> Notify:
        async def notify(method: str, params: Any) -> None:
            await self.say({"method": method, "params": params, "request": request})

        return notify


async def lines(stream: anyio.abc.SocketStream) -> AsyncIterator[bytes]:
    reader = BufferedByteReceiveStream(stream)
    while True:
        try:
            yield await reader.receive_until(b"\n", LINE_LIMIT)
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.DelimiterNotFound, anyio.BrokenResourceError):
            return
