"""Servers of tools that write unreadable messages: waiting callers get an error at once, with the reason."""

import logging
import sys
from pathlib import Path

import pytest

from gateway.agent.mcp.client import MAX_PAGES, MAX_WARNINGS, make_tool_name
from gateway.agent.mcp.message_limiter import ENDLESS_BYTES, MessageLimiter
from gateway.agent.tools import ToolContext, find_tool
from gateway.errors import AgentError
from tests.agent.mcp.test_servers import PARSER, keep, spec, until_tools

pytestmark = pytest.mark.process

__all__ = ["keep"]

SERVER = Path(__file__).with_name("hostileserver.py")
LONGER = 600.0  # seconds that a call may take, so that none of these ends for that


def hostile(how):
    return spec(command=sys.executable, args=(str(SERVER), how), timeout=LONGER)


async def call(servers):
    tool = find_tool(await until_tools(servers.servers["shop"]), make_tool_name("shop", "act"))
    assert tool
    return await tool.call({}, ToolContext())


@pytest.mark.parametrize("how", ["deep", "digits", "half a character"])
async def test_an_answer_that_cannot_be_read_is_told_to_whoever_waits(keep, how):
    servers = await keep(hostile(how))
    for _ in range(2):
        with pytest.raises(AgentError, match="the answer of shop could not be read: 1 validation error"):
            await call(servers)


async def test_a_list_of_tools_that_cannot_be_read_is_the_reason_why_there_are_none(keep):
    servers = await keep(hostile("deep list"))
    with pytest.raises(AgentError, match="the answer of shop could not be read"):
        await servers.servers["shop"].tools()


async def test_a_list_of_tools_without_end_is_left(keep):
    servers = await keep(hostile("pages"))
    assert await call(servers) == "ok"
    assert len(await servers.servers["shop"].tools()) == MAX_PAGES


async def test_noise_is_told_of_so_often_and_no_more(keep, caplog):
    with caplog.at_level(logging.WARNING):
        assert await call(await keep(hostile("noise"))) == "ok"
    told = [one for one in caplog.messages if "the tool server shop wrote what is not a message" in one]
    assert len(told) == MAX_WARNINGS
    assert told[-1].endswith("further ones are not logged")


async def test_a_message_without_end_is_not_waited_for():
    given = 0

    async def pieces():
        nonlocal given
        while True:
            given += 1 << 20
            yield b"x" * (1 << 20)

    limiter = MessageLimiter("shop", PARSER, 1000)
    with pytest.raises(AgentError, match="an answer of shop has 200 MB, and no end"):
        await anext(limiter.read_lines(pieces()))
    with pytest.raises(AgentError, match="and no end"):
        await limiter.read_whole(pieces())
    assert given < 2 * ENDLESS_BYTES + (4 << 20)
