"""The matcher of a shell hook of Hermes's is a foreign pattern: it is tried where it delays no one."""

import time

import anyio
import pytest

from gateway.hermes.tool_guards import check_tool_pattern
from gateway.hermes.wires import matches_tool
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.wire import HookFailed
from gateway.parser.parser_process import ParserProcess
from gateway.worker.protocol import ForkServerSettings
from gateway.yaml_source.tree import SourceLocation

NAME = "mcp__" + "a" * 59


@pytest.fixture
async def parser(tmp_path):
    async with ForkServerClient(ForkServerSettings(processes=256)) as fork_server:
        yield ParserProcess(fork_server, tmp_path / "parser.log")


@pytest.mark.parametrize(
    ("matcher", "theirs", "ours", "is_meant", "needs_process"),
    [
        ("", "terminal", "shell", True, False),
        ("terminal", "terminal", "shell", True, False),
        ("patch|terminal", "terminal", "shell", True, False),
        ("patch", "terminal", "shell", False, False),
        ("shell", "terminal", "shell", True, False),
        ("mcp__.*", NAME, NAME, True, True),
        ("mcp__.*", "terminal", "shell", False, True),
        ("shell.*", "terminal", "shell", True, True),
    ],
)
async def test_a_matcher_means_what_it_meant(parser, matcher, theirs, ours, is_meant, needs_process):
    assert await matches_tool(matcher, theirs, ours, parser.match) is is_meant
    assert bool(parser.pid) is needs_process
    assert await matches_tool(matcher, theirs, ours, None) is is_meant


async def test_a_matcher_that_takes_for_ever_fails_its_hook_and_holds_up_nobody(parser):
    latest = 0.0

    async def tick():
        nonlocal latest
        while True:
            began = time.thread_time()
            await anyio.sleep(0.01)
            latest = max(latest, time.thread_time() - began)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        with pytest.raises(HookFailed, match="could not be read within 2 s"):
            await matches_tool("mcp__(a+)+b", NAME, NAME, parser.match)
        tasks.cancel_scope.cancel()
    assert latest < 1


@pytest.mark.parametrize("matcher", ["(.+)+x", "(a|b+)*c", "(?:\\w+_)*\\d+"])
def test_a_matcher_that_may_take_for_ever_is_not_tried_when_it_is_read(matcher):
    assert list(check_tool_pattern(SourceLocation("config.yaml", 1, 1), matcher)) == []
