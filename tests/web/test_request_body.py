"""Bodies: whole and in chunks, too long, too slow, cut off; and unwanted ones."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import anyio
import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.settings import WebSettings
from gateway.web.http_request import HttpRequest, HttpResponse
from gateway.web.port import PortLimits, WebPort
from gateway.web.request_body import MOST_UNASKED, ChunkDecoder, WebRefusal, find_body
from tests.web.visits import connect, read_all, read_answer, say

MOST = 100_000
USUAL, SOON = PortLimits(), PortLimits(asking=0.3)


async def echo(request: HttpRequest, _peer: str) -> HttpResponse:
    if request.path == "/closed":
        raise WebRefusal(HTTPStatus.FORBIDDEN, "not for you")
    return HttpResponse(body=await request.body.read(MOST))


@asynccontextmanager
async def echoing(limits: PortLimits = USUAL) -> AsyncIterator[str]:
    port = WebPort(WebSettings(listen="127.0.0.1:0"), echo, is_named=True, limits=limits)
    async with anyio.create_task_group() as tasks:
        await tasks.start(port.serve)
        yield port.url
        tasks.cancel_scope.cancel()


def post(*headers: str, path: str = "/") -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", *headers, "", ""]).encode()


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (*parts, b""))


@pytest.mark.parametrize("size", [0, 1, 5, MOST_UNASKED, MOST])
async def test_a_body_is_read_whole(size: int) -> None:
    body = b"\r\n" * (size // 2) + b"x" * (size % 2)
    async with echoing() as url:
        for said in (
            post(f"Content-Length: {size}") + body,
            post("Transfer-Encoding: chunked") + chunked(*([body] if body else [])),
        ):
            answer = read_answer(await to_thread.run_sync(say, url, said))
            assert (answer.status, answer.body) == (200, body)


async def test_what_is_behind_the_body_is_nobodys() -> None:
    async with echoing() as url:
        answer = read_answer(await to_thread.run_sync(say, url, post("Content-Length: 2") + b"okPOST /closed"))
    assert (answer.status, answer.body) == (200, b"ok")


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.integers(1, 9))
def test_chunks_may_come_in_any_pieces(parts: list[bytes], step: int) -> None:
    said, decoder = chunked(*parts), ChunkDecoder()
    found = b"".join(decoder.feed(said[at : at + step]) for at in range(0, len(said), step))
    assert (found, decoder.is_complete) == (b"".join(parts), True)


@pytest.mark.parametrize(
    "said",
    [b"x\r\n", b"\r\n", b"-1\r\n", b"2\nok", b"2\r\nokay", b"0\r\nMore: yes\r\n\r\n", b"0" * 200, b"123456789\r\n"],
)
async def test_chunks_that_are_none_are_refused(said: bytes) -> None:
    async with echoing() as url:
        answer = read_answer(await to_thread.run_sync(say, url, post("Transfer-Encoding: chunked") + said))
    assert answer.status == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"transfer-encoding": "chunked", "content-length": "3"},
        {"transfer-encoding": "gzip, chunked"},
        {"transfer-encoding": "chunked, chunked"},
        {"content-length": "+3"},
        {"content-length": "3, 3"},
        {"content-length": "9" * 20},
    ],
)
def test_what_two_readers_could_understand_in_two_ways_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(WebRefusal):
        find_body(headers)


@pytest.mark.row("T12")
@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        (["Content-Length: 5000000"], "/", 413),
        (["Transfer-Encoding: chunked"], "/", 413),
        (["Content-Length: 5000000"], "/closed", 403),
        (["Transfer-Encoding: chunked"], "/closed", 403),
    ],
)
async def test_who_sends_what_nobody_takes_still_hears_the_answer(headers: list[str], path: str, status: int) -> None:
    body = chunked(*[b"x" * 50_000] * 100) if "chunked" in headers[0] else b"x" * 5_000_000
    async with echoing() as url:
        answer = read_answer(await to_thread.run_sync(say, url, post(*headers, path=path) + body))
    assert answer.status == status


@pytest.mark.row("T12")
@pytest.mark.parametrize("header", ["Content-Length: 9", "Transfer-Encoding: chunked"])
async def test_a_body_that_does_not_come_is_not_waited_for(header: str) -> None:
    async with echoing(SOON) as url:
        assert read_answer(await to_thread.run_sync(say, url, post(header) + b"4\r\nslow")).status == 408


async def test_a_body_that_ends_early_is_told_so() -> None:
    async with echoing() as url:
        with await to_thread.run_sync(connect, url) as client:
            client.sendall(post("Content-Length: 9") + b"short")
            client.shutdown(socket.SHUT_WR)
            assert read_answer(await to_thread.run_sync(read_all, client)).status == 400


async def test_who_waits_for_a_word_is_given_it_only_where_the_body_is_wanted() -> None:
    async with echoing() as url:
        for path, first in (("/", b"HTTP/1.1 100 "), ("/closed", b"HTTP/1.1 403 ")):
            with await to_thread.run_sync(connect, url) as client:
                client.sendall(post("Content-Length: 2", "Expect: 100-continue", path=path))
                assert (await to_thread.run_sync(client.recv, 4096)).startswith(first)
