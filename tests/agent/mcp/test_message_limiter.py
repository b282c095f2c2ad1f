"""A message of a tool server is bounded before it is decoded, and never delays others."""

import json
import sys
import time
from base64 import b64decode
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.agent.mcp.client import MOST_PICTURES, McpSpec
from gateway.agent.mcp.message_limiter import MAX_BYTES, USUAL_BYTES, MessageLimiter
from gateway.agent.mcp.servers import McpServers
from gateway.agent.tools import ToolContext, find_tool
from gateway.config.settings import McpServerSettings
from gateway.errors import AgentError
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.parser.parser_process import ParserProcess
from gateway.worker.protocol import ForkServerSettings
from tests.agent.mcp.conftest import SERVER
from tests.agent.mcp.snapshots import MemorySnapshots
from tests.agent.mcp.test_servers import until_tools
from tests.waits import measure_wait

pytestmark = pytest.mark.process

LIMIT = 1000
DRAWN = (
    "iVBORw0KGgoAAAANSUhEUgAAACUAAAAXCAIAAAADThHyAAAAKElEQVR4nGM8ISfHQEfARE/LRu0btW/UvlH7Ru0btW/UvlH7Ru0jCAApBwEyyIYo"
    "iAAAAABJRU5ErkJggg=="
)
ROUNDS = 3  # the machine may stand still, but not in each of them
QUICK = 1.0  # seconds that the loop may be late, on the busiest machine


@pytest.fixture
async def parser(tmp_path):
    async with ForkServerClient(ForkServerSettings(processes=256)) as fork_server:
        yield ParserProcess(fork_server, tmp_path / "parser.log")


@pytest.fixture(params=["stdio", "http"])
async def tools(request, parser, tmp_path):
    """The tools of a server that is a program, and of one that has an address."""
    if request.param == "stdio":
        settings = McpServerSettings(command=sys.executable, args=(str(SERVER), "stdio", str(tmp_path / "notes")))
    else:
        settings = McpServerSettings(**request.getfixturevalue("shop"))
    servers = McpServers([McpSpec("shop", settings, Path.cwd(), LIMIT, parser)], MemorySnapshots())
    async with anyio.create_task_group() as tasks:
        await tasks.start(servers.run)
        yield await until_tools(servers.servers["shop"])
        tasks.cancel_scope.cancel()


async def call(tools, name, show=None, **args):
    tool = find_tool(tools, f"mcp_shop_{name}")
    assert tool
    return await tool.call(args, ToolContext(show=show))


@asynccontextmanager
async def lateness():
    """How late the loop was at most, while inside."""
    found = [0.0]

    async def tick():
        while True:
            began, waited = time.monotonic(), measure_wait()
            await anyio.sleep(0.01)
            found[0] = max(found[0], time.monotonic() - began - (measure_wait() - waited))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        yield found
        tasks.cancel_scope.cancel()


async def test_a_long_result_is_cut_as_a_short_one_is(tools):
    assert await call(tools, "tell", size=10) == "x" * 10
    for size in (2000, USUAL_BYTES, 3_000_000):
        assert await call(tools, "tell", size=size) == f"{'x' * LIMIT}\n[cut after {LIMIT} characters]"
    assert await call(tools, "picture", size=3_000_000) == "[image, image/png]"


@pytest.mark.parametrize(("pictures", "padding", "whole"), [(7, 0, MOST_PICTURES), (5, 1_000_000, 3)])
async def test_pictures_are_shown_whole_up_to_a_bound(tools, pictures, padding, whole):
    """Of any result so many, and of a message that is made short so many bytes."""
    shown = []

    async def show(data):
        shown.append(data)
        return f"[{len(data)} bytes]"

    lines = (await call(tools, "draw", show, pictures=pictures, padding=padding)).splitlines()
    size = len(b64decode(DRAWN)) + padding + 1
    assert lines[0] == "Here it is:"
    assert lines[1:] == [f"[{size} bytes]"] * whole + ["[image, image/jpeg]"] * (pictures - whole)
    assert [data[-1] for data in shown] == list(range(whole))


async def test_what_is_no_picture_is_not_shown(tools):
    async def show(data):
        raise AssertionError(data)

    assert await call(tools, "picture", show, size=11) == "[image, image/png]"


async def check_that_all_else_goes_on(act):
    """The loop is in time while this is done, in one of a few rounds at least."""
    took: list[float] = []
    while not took or (min(took) >= QUICK and len(took) < ROUNDS):
        async with lateness() as late:
            await act()
        took.append(late[0])
    assert min(took) < QUICK


async def test_a_result_of_60_mb_is_refused_in_words_while_all_else_goes_on(tools):
    async def ask():
        with pytest.raises(AgentError, match=r"the answer of shop has \d+ MB, and 8 MB are read at most: ask for less"):
            await call(tools, "tell", size=60_000_000)

    await check_that_all_else_goes_on(ask)
    assert await call(tools, "price", article="tea") == "tea: 5 francs"


async def test_a_pattern_in_the_schema_of_a_result_is_not_tried(tools):
    async def ask():
        assert json.loads(await call(tools, "describe")) == {"name": "a" * 64 + "!"}

    await check_that_all_else_goes_on(ask)


async def lines_of(*messages, size=0, parser):
    limiter = MessageLimiter("shop", parser, LIMIT)

    async def pieces():
        for message in messages:
            data = message.replace(b"...", b"x" * size) + b"\n"
            for at in range(0, len(data), 65_536):
                yield data[at : at + 65_536]

    return [line async for line in limiter.read_lines(pieces())]


@pytest.mark.parametrize(
    "message",
    [
        b'{"jsonrpc":"2.0","id":7,"result":{"id":8,"text":"..."}}',
        b'{"jsonrpc": "2.0", "id": 7, "error": "..."}',
        b'{"id": 7, "jsonrpc": "2.0", "result": "..."}',
        b'{"result":{"text":"...","id":8},"jsonrpc":"2.0","id":7}',
        b'{"result":{"text":"...","id":8},"id":7,"jsonrpc":"2.0"}',
    ],
)
async def test_whoever_waits_for_an_answer_that_is_too_long_is_told_so(parser, message):
    first, second = await lines_of(message, b'{"next":1}', size=MAX_BYTES, parser=parser)
    told = json.loads(first)
    assert told["id"] == 7
    assert "ask for less" in told["error"]["message"]
    assert second == b'{"next":1}'


HEAPS = {
    "tools": b'{"id":7,"result":{"tools":[' + b",".join([b'{"name":"a","inputSchema":{}}'] * 150_000) + b"]}}",
    "values": b'{"id":7,"result":{"content":[],"_meta":[' + b",".join([b"{}"] * 150_000) + b"]}}",
    "a schema": b'{"id":7,"result":{"tools":[{"name":"a","inputSchema":[' + b",".join([b"{}"] * 150_000) + b"]}]}}",
}


@pytest.mark.parametrize("message", HEAPS.values(), ids=HEAPS)
async def test_a_heap_of_small_values_is_not_decoded_on_the_loop(parser, message):
    (line,) = await lines_of(message, parser=parser)
    told = json.loads(line)
    assert told["id"] == 7
    assert len(told.get("result", {"tools": ()})["tools"]) <= 1000
    assert "error" not in told or "more than 100000 values: ask for less" in told["error"]["message"]
    assert len(line) < USUAL_BYTES


async def test_a_list_of_tools_that_has_much_to_say_is_read(parser):
    words = {f"p{number}": {"type": "string", "description": "x" * 60} for number in range(12)}
    tool = {"name": "sell", "description": "x" * 300, "inputSchema": {"type": "object", "properties": words}}
    message = json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"tools": [tool] * 1000}}).encode()
    (line,) = await lines_of(message, parser=parser)
    assert json.loads(line)["result"]["tools"] == [tool] * 1000


@pytest.mark.parametrize("message", [b'{"method":"x","params":{"text":"...","id":8}}', b"..."])
async def test_what_is_too_long_and_answers_nobody_ends_the_connection(parser, message):
    with pytest.raises(AgentError, match="ask for less"):
        await lines_of(message, size=MAX_BYTES + 1, parser=parser)
