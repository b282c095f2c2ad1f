"""Slow, huge and many clients: each is bounded, and shuts no other out."""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from gateway.config.settings import WebSettings, WebTlsSettings
from gateway.web.free_port import FreePort
from gateway.web.http_request import MAX_HEAD_BYTES, HttpRequest, HttpResponse, HttpStream, SendPiece
from gateway.web.port import PortError, PortLimits, WebPort, bind_socket
from tests.web.visits import connect, read_all, read_answer, say, visit

FREE = WebSettings(listen="127.0.0.1:0")
USUAL = PortLimits()
SOON = PortLimits(connections=4, asking=0.3, taking=0.3)


async def answer_path(request: HttpRequest, peer: str) -> HttpResponse:
    if request.path == "/broken":
        raise RuntimeError("a fault")
    return HttpResponse(body=b"x" * 50_000_000 if request.path == "/huge" else f"{request.path} {peer}".encode())


@asynccontextmanager
async def serving(limits: PortLimits = USUAL, settings: WebSettings = FREE) -> AsyncIterator[str]:
    port = WebPort(settings, answer_path, is_named=True, limits=limits)
    async with anyio.create_task_group() as tasks:
        await tasks.start(port.serve)
        yield port.url
        tasks.cancel_scope.cancel()
    assert not port.url


async def test_a_request_is_answered_and_the_connection_closed() -> None:
    async with serving() as url:
        answer = await to_thread.run_sync(visit, url, "/some?thing")
    assert (answer.status, answer.body, answer.headers["connection"]) == (200, b"/some 127.0.0.1", "close")


async def test_a_fault_in_one_answer_is_answered_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as url:
        assert (await to_thread.run_sync(visit, url, "/broken")).status == 500
        assert (await to_thread.run_sync(visit, url, "/well")).status == 200
    assert "web: /broken failed" in caplog.text


async def test_headers_that_never_end_are_refused() -> None:
    async with serving() as url:
        said = await to_thread.run_sync(say, url, b"GET / HTTP/1.1\r\nX: " + b"x" * (MAX_HEAD_BYTES + 1))
        long = b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n"
        assert [read_answer(said).status, read_answer(await to_thread.run_sync(say, url, long)).status] == [431, 431]


@pytest.mark.parametrize(
    "said",
    [
        b"\r\n\r\n",
        b"GET / HTTP/2\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"GET http://elsewhere/ HTTP/1.1\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        "\x16\x03\x01\x02\r\n\r\n".encode("latin-1"),
    ],
)
async def test_what_could_be_read_in_two_ways_is_refused(said: bytes) -> None:
    async with serving() as url:
        assert read_answer(await to_thread.run_sync(say, url, said)).status == 400


async def test_whoever_does_not_ask_in_time_is_closed() -> None:
    async with serving(SOON) as url:
        assert await to_thread.run_sync(say, url, b"GET / HTTP/1.1\r\n") == b""


async def test_whoever_does_not_take_the_answer_is_closed() -> None:
    async with serving(SOON) as url:
        with await to_thread.run_sync(connect, url) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(b"GET /huge HTTP/1.1\r\n\r\n")
            await to_thread.run_sync(wait_until_closed, client)
            assert len(await to_thread.run_sync(read_all, client)) < 50_000_000


def wait_until_closed(client: socket.socket) -> None:
    """Until the other end has reset the connection, without reading from it."""
    while client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
        try:
            client.send(b"x")
        except ConnectionError:
            return


async def test_those_who_hold_connections_and_say_nothing_shut_nobody_out() -> None:
    async with serving(PortLimits(connections=4)) as url:
        silent = [await to_thread.run_sync(connect, url) for _ in range(8)]
        try:
            assert (await to_thread.run_sync(visit, url)).status == 200
            assert await to_thread.run_sync(read_all, silent[0]) == b""
        finally:
            for client in silent:
                client.close()


async def test_a_stream_that_nobody_takes_is_ended() -> None:
    ended = anyio.Event()

    async def tell(send: SendPiece) -> None:
        try:
            while True:
                await send(b"x" * 100_000)
        finally:
            ended.set()

    async def answer(_request: HttpRequest, _peer: str) -> HttpStream:
        return HttpStream(tell, "text/plain")

    port = WebPort(FREE, answer, is_named=True, limits=SOON)
    async with anyio.create_task_group() as tasks:
        await tasks.start(port.serve)
        with await to_thread.run_sync(connect, port.url) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            await ended.wait()
        tasks.cancel_scope.cancel()


async def test_a_stream_ends_with_whoever_leaves() -> None:
    ended = anyio.Event()

    async def tell(send: SendPiece) -> None:
        await send(b"hello")
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def answer(_request: HttpRequest, _peer: str) -> HttpStream:
        return HttpStream(tell, "text/plain")

    port = WebPort(FREE, answer, is_named=True)
    async with anyio.create_task_group() as tasks:
        await tasks.start(port.serve)
        with await to_thread.run_sync(connect, port.url) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert await to_thread.run_sync(client.recv, 4096)
        await ended.wait()
        tasks.cancel_scope.cancel()


async def test_a_fault_in_a_stream_ends_that_stream_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(send: SendPiece) -> None:
        await send(b"hello")
        raise RuntimeError("a fault")

    async def answer(request: HttpRequest, _peer: str) -> HttpStream | HttpResponse:
        return HttpStream(fail, "text/plain") if request.path == "/stream" else HttpResponse()

    port = WebPort(FREE, answer, is_named=True)
    async with anyio.create_task_group() as tasks:
        await tasks.start(port.serve)
        await to_thread.run_sync(say, port.url, b"GET /stream HTTP/1.1\r\n\r\n")
        assert (await to_thread.run_sync(visit, port.url, "/well")).status == 200
        tasks.cancel_scope.cancel()
    assert "web: /stream failed" in caplog.text


async def test_a_half_closed_client_still_hears_the_answer() -> None:
    async with serving() as url:
        with await to_thread.run_sync(connect, url) as client:
            client.sendall(b"GET /here HTTP/1.1\r\n\r\n")
            client.shutdown(socket.SHUT_WR)
            assert b"/here" in await to_thread.run_sync(read_all, client)


async def test_a_head_without_a_body() -> None:
    async with serving() as url:
        answer = await to_thread.run_sync(visit, url, "/some", "HEAD")
    assert (answer.body, answer.headers["content-length"]) == (b"", "15")


async def test_an_address_that_is_taken_is_an_error_only_where_somebody_named_it() -> None:
    with bind_socket("127.0.0.1:0") as taken:
        settings = WebSettings(listen=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(PortError, match=r"is taken: Address already in use\nset web.listen to another port"):
            await WebPort(settings, answer_path, is_named=True).serve()
        unnamed = WebPort(settings, answer_path, is_named=False)
        async with anyio.create_task_group() as tasks:
            await tasks.start(unnamed.serve)
            assert unnamed.trouble.startswith(f"web: {settings.listen} is taken")
            assert "in use; set web.listen" in unnamed.trouble
            assert not unnamed.url
            tasks.cancel_scope.cancel()


async def test_the_usual_address_that_is_taken_gives_way_to_the_next_free_one_which_is_kept(tmp_path: Path) -> None:
    with bind_socket("127.0.0.1:0") as taken:
        settings, file = WebSettings(listen=f"127.0.0.1:{taken.getsockname()[1]}"), tmp_path / "port"
        port = WebPort(settings, answer_path, is_named=False, find_free=lambda: FreePort(settings.listen, file))
        urls = []
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                await tasks.start(port.serve)
                urls.append(port.url)
                tasks.cancel_scope.cancel()
            taken.close()  # the second time nobody has the usual one
    assert urls == [f"http://{file.read_text().strip()}"] * 2
    assert settings.listen not in urls[0]


def write_certificate(folder: Path) -> WebTlsSettings:
    """For this machine, by itself."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gate")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    (folder / "cert.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    plain = (PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, *plain))
    return WebTlsSettings(cert=str(folder / "cert.pem"), key=str(folder / "key.pem"))


async def test_it_speaks_tls_and_waits_for_no_handshake_for_ever(tmp_path: Path) -> None:
    settings = WebSettings(listen="127.0.0.1:0", tls=write_certificate(tmp_path))
    trusting = ssl.create_default_context(cafile=settings.tls.cert)
    trusting.check_hostname = False

    def ask(client: socket.socket) -> bytes:
        with trusting.wrap_socket(client) as talking:
            talking.sendall(b"GET /here HTTP/1.1\r\n\r\n")
            return read_all(talking)

    async with serving(SOON, settings) as url:
        assert url.startswith("https://")
        plain = url.replace("https:", "http:")
        silent = [await to_thread.run_sync(connect, plain) for _ in range(6)]
        assert b"/here" in await to_thread.run_sync(ask, await to_thread.run_sync(connect, plain))
        assert [await to_thread.run_sync(read_all, client) for client in silent] == [b""] * 6
        for client in silent:
            client.close()


async def test_a_certificate_that_is_not_there_is_named(tmp_path: Path) -> None:
    tls = WebTlsSettings(cert=str(tmp_path / "cert.pem"), key=str(tmp_path / "key.pem"))
    with pytest.raises(PortError, match=r"cert.pem and .*key.pem cannot be used: No such file"):
        await WebPort(WebSettings(listen="127.0.0.1:0", tls=tls), answer_path, is_named=False).serve()
