"""The listener: a limited number of connections, each with limits on time and bytes for its request.

A connection is one request: its head must come within ten seconds and 16 kB, its body is read only if the answer needs
it, and the answer closes it. When all places are taken, a new connection replaces the one that has been silent longest,
so clients that hold connections open and say nothing cannot lock out others.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import NoReturn, TypeAlias

import anyio
import anyio.abc
import anyio.lowlevel
import msgspec

from gateway.config.settings import WebSettings
from gateway.errors import GatewayError
from gateway.web.free_port import FreePort
from gateway.web.host_rules import HostRules, is_link
from gateway.web.http_request import (
    END_OF_HEAD,
    MAX_HEAD_BYTES,
    HttpRequest,
    HttpResponse,
    HttpStream,
    answer_refusal,
    parse_request,
)
from gateway.web.request_body import RequestBody, WebRefusal
from gateway.yaml_source.addresses import split_address

log = logging.getLogger(__name__)

ACCEPT_PAUSE = 0.5
BACKLOG = 128
IN_USE = "{address} is taken: {reason}\nset web.listen to another port, or web.enabled: false"

AnswerRequest: TypeAlias = Callable[[HttpRequest, str], Awaitable[HttpResponse | HttpStream]]
"""The answer to a request, by the request and the address of its sender. Raises WebRefusal."""


class PortLimits(msgspec.Struct, frozen=True):
    """The limits: connections at a time, and seconds to ask, to take the answer, and to stop sending after it."""

    connections: int = 512  # two for each of two hundred pages, and some for programs
    asking: float = 10.0
    taking: float = 30.0
    leaving: float = 2.0


USUAL_LIMITS = PortLimits()


class Router(msgspec.Struct, eq=False):
    """The router: it picks the answer by the first word of the path, or else `otherwise`."""

    _rules: HostRules
    _routes: Mapping[str, AnswerRequest]
    _otherwise: AnswerRequest

    async def answer(self, request: HttpRequest, peer: str) -> HttpResponse | HttpStream:
        """Check the host, and answer a request; raises WebRefusal."""
        self._rules.check(request.headers, peer, is_link=is_link(request.path))
        first = request.path.split("/", 2)[1]
        return await self._routes.get(first, self._otherwise)(request, peer)


class PortError(GatewayError):
    """The address cannot be listened on: another program does, or it is not an address of this machine."""


class WebPort(msgspec.Struct, eq=False):
    """One listening address. `url` is "" while the port is closed, and then `trouble` says why.

    `find_free` chooses another address, or returns None if a program relies on this one.
    """

    _settings: WebSettings
    _answer: AnswerRequest
    is_named: bool
    find_free: Callable[[], FreePort | None] = lambda: None
    limits: PortLimits = USUAL_LIMITS
    _connections: dict["PortConnection", "PortConnection"] = {}  # the oldest first
    url: str = ""
    trouble: str = ""

    @property
    def local_url(self) -> str:
        """The URL for this machine itself, also if the port listens on all its addresses."""
        return self.url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Accept connections until cancelled.

        Raises:
            PortError: the configuration names this address, and it is not available. The default one is optional.
        """
        tls = load_certificate(self._settings)
        try:
            listening = self._bind()
        except PortError as error:
            if self.is_named:
                raise
            why = str(error).replace("\n", "; ")
            self.trouble = f"web: {why}"
            log.info("the port is off: %s", why)
            task_status.started()
            await anyio.sleep_forever()
        self.url = f"{'https' if tls else 'http'}://{format_address(listening)}"
        try:
            with listening:
                async with anyio.create_task_group() as tasks:
                    task_status.started()
                    await self._accept(listening, tls, tasks)
        finally:
            self.url = ""
            for connection in list(self._connections):
                connection.abort()

    def _bind(self) -> socket.socket:
        """Bind the address of the settings, or a free one; raises PortError."""
        if free := self.find_free():
            for address in free.list():
                with suppress(PortError):
                    listening = bind_socket(address)
                    if free.keep(address):
                        usual = self._settings.listen
                        log.info("web: %s is taken, so the page is at %s from now on", usual, address)
                    return listening
        return bind_socket(self._settings.listen)

    async def _accept(
        self, listening: socket.socket, tls: ssl.SSLContext | None, tasks: anyio.abc.TaskGroup
    ) -> NoReturn:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as error:  # the client has left, or no more sockets can be opened
                log.debug("web: no request could be checked: %s", error)
                await anyio.sleep(ACCEPT_PAUSE)
                continue
            if len(self._connections) >= self.limits.connections and not self._make_room():
                accepted.close()
                continue
            connection = PortConnection(self._answer, tasks, self.limits, self._connections.pop)
            self._connections[connection] = connection
            tasks.start_soon(self._open, connection, accepted, tls)
            await anyio.lowlevel.checkpoint()  # accept a burst one by one, beside all other work

    def _make_room(self) -> bool:
        """Close the connection that has been silent longest, or that still sends after its answer.

        Returns False if no connection can be closed.
        """
        silent = next((one for one in self._connections if not one.has_asked or one.is_leaving), None)
        if silent:
            silent.abort()
        return silent is not None

    async def _open(self, connection: "PortConnection", accepted: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Open a connection; a failure here is the caller's: it left, or does not speak TLS."""
        loop, patience = asyncio.get_running_loop(), self.limits.asking if tls else None
        with connection.opening, suppress(OSError):
            await loop.connect_accepted_socket(lambda: connection, accepted, ssl=tls, ssl_handshake_timeout=patience)
            return
        self._connections.pop(connection, None)
        accepted.close()


class PortConnection(asyncio.Protocol):
    """One connection, from its first byte to the end of its answer."""

    def __init__(
        self,
        answer: AnswerRequest,
        tasks: anyio.abc.TaskGroup,
        limits: PortLimits,
        on_end: Callable[["PortConnection"], object],
    ) -> None:
        self.opening = anyio.CancelScope()
        self.has_asked = False
        self._answer = answer
        self._tasks = tasks
        self.limits = limits
        self._on_end = on_end
        self._buffer = bytearray()
        self._body = RequestBody()
        self.is_leaving = self._streams = False
        self._transport: asyncio.Transport | None = None
        self._answering = anyio.CancelScope()
        self._has_room = anyio.Event()
        self._has_room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(self.limits.asking, self.abort)

    def data_received(self, data: bytes) -> None:
        assert self._transport
        if self.has_asked:
            self._body.feed(data)
            if self.is_leaving and self._body.is_complete:
                self._transport.close()
            return
        seen = max(0, len(self._buffer) - len(END_OF_HEAD))
        self._buffer += data
        end = self._buffer.find(END_OF_HEAD, seen)
        if end > MAX_HEAD_BYTES or (end < 0 and len(self._buffer) > MAX_HEAD_BYTES):
            what = f"more than {MAX_HEAD_BYTES} bytes of headers"
            self._refuse(WebRefusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, what))
        elif end >= 0:
            try:
                request = parse_request(bytes(self._buffer[:end]))
            except WebRefusal as refusal:
                self._refuse(refusal)
            else:
                behind = bytes(self._buffer[end + len(END_OF_HEAD) :])
                self._begin_answer()
                self._body = request.body
                self._body.connect(self._transport, self.limits.asking)
                self._body.feed(behind)
                self._tasks.start_soon(self._respond, request)

    def eof_received(self) -> bool:
        assert self._transport
        self._body.end()
        is_plain = self._transport.get_extra_info("sslcontext") is None  # TLS cannot close one half of a connection
        hears = self.has_asked and not self.is_leaving and not self._streams
        return hears and is_plain  # a client may close its half and still get an answer; a stream ends with it

    def connection_lost(self, _error: Exception | None) -> None:
        self._on_end(self)
        self._answering.cancel()
        self._timer.cancel()
        self._buffer.clear()

    def pause_writing(self) -> None:
        """Start the time limit: the client takes no bytes now."""
        self._has_room = anyio.Event()
        self._timer.cancel()
        self._timer = self._loop.call_later(self.limits.taking, self.abort)

    def resume_writing(self) -> None:
        self._has_room.set()
        self._timer.cancel()

    def abort(self) -> None:
        """Close the connection at once, whatever it is doing."""
        if self._transport is None:
            self.opening.cancel()
        else:
            self._transport.abort()

    async def _respond(self, request: HttpRequest) -> None:
        assert self._transport
        peer = self._transport.get_extra_info("peername") or ("",)
        with self._answering:
            answer = await self._find_answer(request, str(peer[0]))
            if isinstance(answer, HttpStream):
                self._streams = True
                await self._write(answer.encode_headers())
                if request.method != "HEAD":
                    await self._run_stream(request.path, answer)
                self._leave()
            else:
                self._send(answer.encode(request.method))

    async def _find_answer(self, request: HttpRequest, peer: str) -> HttpResponse | HttpStream:
        """Return the answer to a request; errors become answers too."""
        try:
            return await self._answer(request, peer)
        except WebRefusal as refusal:
            return answer_refusal(refusal)
        except Exception:  # a fault in one answer must not stop the others
            log.exception("web: %s failed", request.path)
            failed = WebRefusal(HTTPStatus.INTERNAL_SERVER_ERROR, "this failed inside the gateway; see its log")
            return answer_refusal(failed)

    async def _run_stream(self, path: str, stream: HttpStream) -> None:
        try:
            await stream.run(self._write)
        except Exception:  # the sent part cannot be taken back; other answers go on
            log.exception("web: %s failed", path)
            self.abort()

    async def _write(self, data: bytes) -> None:
        """Write a piece of a stream; returns when the client can take more."""
        assert self._transport
        if not self._transport.is_closing():
            self._transport.write(data)
        await self._has_room.wait()

    def _refuse(self, refusal: WebRefusal) -> None:
        self._begin_answer()
        self._send(answer_refusal(refusal).encode())

    def _begin_answer(self) -> None:
        """Stop reading anything but the body."""
        self.has_asked = True
        self._buffer.clear()
        self._timer.cancel()

    def _send(self, data: bytes) -> None:
        if self._transport and not self._transport.is_closing():
            self._timer.cancel()
            self._timer = self._loop.call_later(self.limits.taking, self.abort)
            self._transport.write(data)
            self._leave()

    def _leave(self) -> None:
        """Close the connection once the answer is taken, and let a client that still sends finish for a while.

        Closing it with unread bytes would discard the answer at the client too.
        """
        assert self._transport
        self._body.drop()
        self.is_leaving = True
        if self._body.is_complete or self._transport.is_closing():
            self._transport.close()
            return
        if self._transport.can_write_eof():
            with suppress(OSError):  # the client has left meanwhile
                self._transport.write_eof()
        self._timer.cancel()
        self._timer = self._loop.call_later(self.limits.leaving, self._transport.close)


def bind_socket(listen: str) -> socket.socket:
    """Bind and listen on an address; raises PortError."""
    address, port = split_address(listen)
    made = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address.version == 6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((str(address), port))
        made.listen(BACKLOG)  # two sockets can be bound to one address, but only one of them can listen
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise PortError(IN_USE.format(address=listen, reason=error.strerror)) from None
    return made


def format_address(listening: socket.socket) -> str:
    host, port, *_ = listening.getsockname()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def load_certificate(settings: WebSettings) -> ssl.SSLContext | None:
    """Load the port's certificate; None if it uses no TLS.

    Raises:
        PortError: the files were not found, or are invalid.
    """
    if not settings.tls.cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.tls.cert, settings.tls.key)
    except OSError as error:
        what = f"web.tls: {settings.tls.cert} and {settings.tls.key} cannot be used: {error.strerror or error}"
        raise PortError(f"{what}\nname the files of a certificate and of its key") from None
    return context
