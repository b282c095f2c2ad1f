"""The control socket: requests, notifications, faults, callers that leave."""

import json
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.control import LINE_LIMIT
from gateway.control.client import ControlClient, ControlError
from gateway.control.listener import MAX_CALLERS
from gateway.control.server import MAX_OPEN_REQUESTS, ControlServer, VerbAnswer
from gateway.errors import ConfigError, ExitCode, GatewayError, NotRunning
from gateway.verbs import Notify, Verb


async def echo(params: dict[str, Any], notify: Notify) -> Any:
    for word in params.get("words", []):
        await notify("word", word)
    return params


async def refuse(params: dict[str, Any], notify: Notify) -> Any:
    raise ConfigError("config.yaml:3:1: no such agent")


async def crash(params: dict[str, Any], notify: Notify) -> Any:
    raise ZeroDivisionError


@asynccontextmanager
async def serving(path: Path, **verbs: Any) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        served = {"echo": echo, "refuse": refuse, "crash": crash} | verbs
        answers = {name: VerbAnswer(Verb(name, "", dict, "owner"), answer) for name, answer in served.items()}
        await tasks.start(ControlServer(path, answers).serve)
        yield
        await anyio.sleep(0.01)  # who has hung up is seen before the end: both at once are too much for a stream
        tasks.cancel_scope.cancel()


def call(path: Path, method: str, params: dict[str, Any] | None = None) -> tuple[Any, list[Any]]:
    heard: list[Any] = []
    with ControlClient(path) as client:
        return client.call(method, params, lambda name, value: heard.append((name, value))), heard


async def test_a_request_is_answered_after_its_notifications(tmp_path: Path) -> None:
    async with serving(tmp_path / "s"):
        result, heard = await anyio.to_thread.run_sync(call, tmp_path / "s", "echo", {"words": ["a", "b"]})
    assert result == {"words": ["a", "b"]}
    assert heard == [("word", "a"), ("word", "b")]


async def test_an_error_of_ours_comes_with_its_words_and_exit_code(tmp_path: Path) -> None:
    async with serving(tmp_path / "s"):
        with pytest.raises(ControlError, match=r"config\.yaml:3:1") as caught:
            await anyio.to_thread.run_sync(call, tmp_path / "s", "refuse")
    assert caught.value.exit is ExitCode.CONFIG


async def test_a_fault_of_ours_is_told_and_the_next_request_works(tmp_path: Path) -> None:
    async with serving(tmp_path / "s"):
        with pytest.raises(ControlError, match="failed inside the gateway"):
            await anyio.to_thread.run_sync(call, tmp_path / "s", "crash")
        result, _ = await anyio.to_thread.run_sync(call, tmp_path / "s", "echo", {"n": 1})
    assert result == {"n": 1}


async def test_an_unknown_verb_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path / "s"):
        with pytest.raises(ControlError, match="`nonsense`"):
            await anyio.to_thread.run_sync(call, tmp_path / "s", "nonsense")


async def test_what_is_no_request_is_answered_and_hurts_nobody(tmp_path: Path) -> None:
    def throw() -> bytes:
        with socket.socket(socket.AF_UNIX) as rude:
            rude.connect(str(tmp_path / "s"))
            rude.sendall(b"\x00\xff not json\n")
            return rude.recv(1000)

    async with serving(tmp_path / "s"):
        assert b"-32600" in await anyio.to_thread.run_sync(throw)
        result, _ = await anyio.to_thread.run_sync(call, tmp_path / "s", "echo", {"n": 2})
    assert result == {"n": 2}


def ask(path: Path, data: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as rude:
        rude.connect(str(path))
        rude.sendall(data)
        return rude.makefile("rb").readline()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"id":1,"method":"\xff"}\n', id="bytes-that-are-no-text"),
        pytest.param(b'{"id":1,"method":"echo","params":{"a":' + b"[" * 100_000 + b"\n", id="deep"),
        pytest.param(b'{"id":1,"method":"' + b"a" * LINE_LIMIT + b'"}\n', id="long"),
        pytest.param(b'{"id":1,"method":"crash"}\n', id="crash"),
        pytest.param(b'{"id":1,"method":"unsayable"}\n', id="a-result-that-is-no-json"),
    ],
)
async def test_the_worst_request_is_answered_and_nobody_else_is_cut_off(tmp_path: Path, data: bytes) -> None:
    async def unsayable(params: dict[str, Any], notify: Notify) -> Any:
        endless: list[Any] = []
        endless.append(endless)
        return endless

    async with serving(tmp_path / "s", unsayable=unsayable):
        with ControlClient(tmp_path / "s") as other:
            assert b'"error"' in await anyio.to_thread.run_sync(ask, tmp_path / "s", data)
            assert await anyio.to_thread.run_sync(other.call, "echo", {"n": 1}) == {"n": 1}


async def test_a_request_with_half_of_a_sign_is_refused_by_its_number_and_in_words(tmp_path: Path) -> None:
    line = b'{"id":7,"method":"echo","params":{"a":"x \\ud83d"}}\n'
    async with serving(tmp_path / "s"):
        said = json.loads(await anyio.to_thread.run_sync(ask, tmp_path / "s", line))
    assert said["id"] == 7
    assert "one half of a surrogate pair" in said["error"]["message"]


async def test_a_name_of_a_file_that_is_no_text_is_spelt_out(tmp_path: Path) -> None:
    async def names(params: dict[str, Any], notify: Notify) -> Any:
        return {"folder": "bad\udcff"}

    async with serving(tmp_path / "s", names=names):
        result, _ = await anyio.to_thread.run_sync(call, tmp_path / "s", "names")
    assert result == {"folder": r"bad\udcff"}


async def test_a_caller_who_asks_on_and_never_reads_has_only_so_many_requests_open(tmp_path: Path) -> None:
    begun = 0

    async def long(params: dict[str, Any], notify: Notify) -> Any:
        nonlocal begun
        begun += 1
        return "a" * 100_000

    def flood() -> int:
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.connect(str(tmp_path / "s"))
            deaf.settimeout(1)
            with suppress(TimeoutError):
                for _ in range(1_000):
                    deaf.sendall(b'{"id":1,"method":"long"}\n' * 100)
            return begun

    async with serving(tmp_path / "s", long=long):
        assert await anyio.to_thread.run_sync(flood) < MAX_OPEN_REQUESTS + 10  # some answers find room on the way
        result, _ = await anyio.to_thread.run_sync(call, tmp_path / "s", "echo", {"n": 1})
    assert result == {"n": 1}


async def test_a_request_ends_when_its_caller_leaves(tmp_path: Path) -> None:
    began, ended = anyio.Event(), anyio.Event()

    async def endless(params: dict[str, Any], notify: Notify) -> Any:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with serving(tmp_path / "s", endless=endless):
        client = ControlClient(tmp_path / "s")
        client.start("endless")
        await began.wait()
        client.close()
        await ended.wait()


async def test_only_the_owner_may_use_the_socket_and_a_stale_one_is_replaced(tmp_path: Path) -> None:
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "s"))
    stale.close()
    async with serving(tmp_path / "s"):
        assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
        result, _ = await anyio.to_thread.run_sync(call, tmp_path / "s", "echo")
    assert result == {}
    assert not (tmp_path / "s").exists()


def test_without_a_gateway_the_client_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="hermes-gateway run"):
        ControlClient(tmp_path / "s")


async def test_what_is_too_long_to_be_asked_is_said_and_not_sent(tmp_path: Path) -> None:
    async with serving(tmp_path / "s"):
        with pytest.raises(GatewayError, match="more than the 8 MB"):
            await anyio.to_thread.run_sync(call, tmp_path / "s", "echo", {"a": "a" * LINE_LIMIT})


async def test_what_is_too_long_gets_its_error_while_it_is_still_being_sent_and_the_next_is_answered(
    tmp_path: Path,
) -> None:
    def rant() -> list[bytes]:
        with socket.socket(socket.AF_UNIX) as rude:
            rude.connect(str(tmp_path / "s"))
            said = rude.makefile("rb")
            rude.sendall(b"a" * (LINE_LIMIT + 1))
            heard = [said.readline()]  # before the line has an end
            rude.sendall(b"a" * (3 * LINE_LIMIT) + b'\n{"id":7,"method":"echo","params":{"n":1}}\n')
            return [*heard, said.readline()]

    async with serving(tmp_path / "s"):
        first, second = await anyio.to_thread.run_sync(rant)
    assert b"8 MB at the most" in first
    assert b'"id":7,"result":{"n":1}' in second


async def test_only_so_many_are_connected_and_the_next_is_told_why_not(tmp_path: Path) -> None:
    def crowd() -> str:
        with ExitStack() as stack:
            callers = [stack.enter_context(ControlClient(tmp_path / "s")) for _ in range(MAX_CALLERS)]
            assert callers[-1].call("echo", {"n": 1}) == {"n": 1}
            with ControlClient(tmp_path / "s") as late, pytest.raises(ControlError) as refused:
                late.call("echo")
            callers.pop().close()
            assert callers[0].call("echo", {"n": 2}) == {"n": 2}
            return str(refused.value)

    async with serving(tmp_path / "s"):
        assert f"{MAX_CALLERS} callers are connected" in await anyio.to_thread.run_sync(crowd)
        result, _ = await anyio.to_thread.run_sync(call, tmp_path / "s", "echo", {"n": 3})
    assert result == {"n": 3}


@contextmanager
def told(path: Path, data: bytes) -> Iterator[ControlClient]:
    """Yield a client that has received this data, and whose other end has hung up."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with ControlClient(path) as client:
            accepted, _ = listener.accept()
            accepted.sendall(data)
            accepted.close()
            yield client


def test_who_is_refused_reads_why_though_the_other_end_has_hung_up(tmp_path: Path) -> None:
    """Before the caller wrote its request, and after it: the refusal is all that comes."""
    refusal = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "too many"}}\n'
    with told(tmp_path / "s", refusal) as client:
        with pytest.raises(ControlError, match="too many"):
            client.call("status")
        with pytest.raises(NotRunning, match="went away"):
            client.call("status")


def test_an_answer_that_was_cut_off_by_a_kill_is_none(tmp_path: Path) -> None:
    cut_off = b'{"jsonrpc": "2.0", "id": 1, "result": {"sta'
    with told(tmp_path / "s", cut_off) as client, pytest.raises(NotRunning, match="went away"):
        client.call("status")
