"""The gateway's end of a wire reads no faster than it can act, and keeps no more than it must."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import anyio
import msgspec
import pytest
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from gateway.hooks.wires import codec
from gateway.hooks.wires.codec import RpcMessage
from gateway.hooks.wires.peer import MAX_OPEN_REQUESTS, MAX_UNREAD_BYTES, Peer
from gateway.hooks.wires.wire import HookFailed
from tests.spine import until


@dataclass
class Line(asyncio.Transport):
    """Both transports: it notes what is written, and whether it is read."""

    written: list[dict[str, Any]] = field(default_factory=list)
    is_read: bool = True
    waiting: int = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += [msgspec.json.decode(line) for line in bytes(data).splitlines()]

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


class Desk:
    """A gateway that answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any], str]] = []
        self.may_answer = anyio.Event()
        self.noticed: list[RpcMessage] = []
        self.lost: list[str] = []

    async def serve(self, verb: str, params: dict[str, Any], during: str) -> Any:
        self.asked.append((verb, params, during))
        await self.may_answer.wait()
        if verb == "fail":
            raise ValueError("not granted")
        return {"ok": verb}


@pytest.fixture
async def tasks() -> AsyncIterator[TaskGroup]:
    async with anyio.create_task_group() as tasks:
        yield tasks
        tasks.cancel_scope.cancel()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
async def peer(desk: Desk, line: Line, tasks: TaskGroup) -> Peer:
    peer = Peer(desk.serve, tasks, desk.noticed.append, desk.lost.append)
    peer.attach(line, line)
    return peer


def ask(number: int, verb: str = "send") -> bytes:
    return (
        msgspec.json.encode({"id": number, "method": f"gateway.{verb}", "params": {"n": number}, "during": "e1"})
        + b"\n"
    )


async def test_a_call_gets_its_own_answer(peer: Peer, line: Line) -> None:
    over: list[int] = []
    one, first = peer.call("x", b'{"a":1}', b"{}", over.append)
    two, second = peer.call("x", b"{}", b'{"turn":"t"}', over.append)
    peer.received(codec.encode_response(two, "second") + codec.encode_response(one, "first"))
    assert (await first).result == "first"
    assert (await second).result == "second"
    assert over == [two, one]
    assert line.written[1]["meta"] == {"turn": "t"}


async def test_answers_to_nobody_are_passed_over(peer: Peer, desk: Desk) -> None:
    peer.received(b'{"id":99}\n{"id":"x"}\n{"id":null}\n{}\n')
    assert not desk.lost


async def test_a_request_is_served_with_what_caused_it(peer: Peer, desk: Desk, line: Line) -> None:
    desk.may_answer.set()
    peer.received(ask(5))
    await until(lambda: line.written)
    assert desk.asked == [("send", {"n": 5}, "e1")]
    assert line.written == [{"jsonrpc": "2.0", "id": 5, "result": {"ok": "send"}}]


async def test_a_refusal_is_an_answer(peer: Peer, desk: Desk, line: Line) -> None:
    desk.may_answer.set()
    peer.received(ask(5, "fail"))
    await until(lambda: line.written)
    assert line.written[0]["error"]["message"] == "not granted"


async def test_what_is_no_request_is_told_so(peer: Peer, line: Line) -> None:
    peer.received(
        b'{"id":1,"method":"sende"}\n{"id":2,"method":"gateway.send","params":[1]}\n{"method":"no answer wanted"}\n'
    )
    assert [message["error"]["code"] for message in line.written] == [codec.METHOD_UNKNOWN] * 2


async def test_so_many_requests_are_served_at_once_and_no_more_are_read(peer: Peer, desk: Desk, line: Line) -> None:
    peer.received(b"".join(map(ask, range(1_000))))
    await until(lambda: len(desk.asked) == MAX_OPEN_REQUESTS)
    assert not line.is_read
    desk.may_answer.set()
    await until(lambda: len(line.written) == 1_000)
    assert line.is_read


async def test_who_does_not_read_is_not_read(peer: Peer, desk: Desk, line: Line) -> None:
    peer.pause_requests()
    peer.received(ask(1))
    assert not line.is_read
    await anyio.wait_all_tasks_blocked()
    assert not desk.asked
    peer.resume_requests()
    await until(lambda: desk.asked)
    assert line.is_read


async def test_who_has_long_not_read_gets_no_more_calls(peer: Peer, line: Line) -> None:
    line.waiting = MAX_UNREAD_BYTES + 1
    with pytest.raises(HookFailed, match="does not read"):
        peer.call("x", b"{}", b"{}", lambda _: None)


async def test_a_flood_leaves_the_loop_to_others(peer: Peer) -> None:
    """Between two turns of a flood's work others run: here, a task that only yields."""
    peer.received(b'{"id":1}\n' * 20_000)
    turns = 0
    while peer._reader._lines.renew():
        await checkpoint()
        turns += 1
    assert turns > 20_000 // codec.LINES_PER_TICK


async def test_garbage_ends_the_wire_once(peer: Peer, desk: Desk) -> None:
    peer.received(b"print() that hit the wire\nmore of it\n")
    peer.received(b"and more\n")
    assert len(desk.lost) == 1
    assert "it begins with 'print() that hit the wire'" in desk.lost[0]


async def test_what_the_wire_says_of_itself_is_no_request(peer: Peer, desk: Desk) -> None:
    peer.received(b'{"method":"$ready","params":{"handle":true}}\n')
    assert [message.method for message in desk.noticed] == ["$ready"]


async def test_at_the_end_whoever_waits_is_told_why(peer: Peer) -> None:
    over: list[int] = []
    number, pending = peer.call("x", b"{}", b"{}", over.append)
    peer.close(lambda: HookFailed("gone", kind="died"))
    with pytest.raises(HookFailed, match="gone"):
        await pending
    assert over == [number]


async def test_after_the_end_nothing_is_written(peer: Peer, desk: Desk, line: Line) -> None:
    peer.received(ask(1))
    peer.hang_up()
    desk.may_answer.set()
    peer.tell("$stop")
    await anyio.wait_all_tasks_blocked()
    assert not line.written
