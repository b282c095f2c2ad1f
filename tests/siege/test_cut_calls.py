"""The effects of a kill, as others see them: a server whose caller is gone, and a tool that never ends."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from gateway.testing import GatewayProcess
from tests.adapters.discord_wire import DiscordWire
from tests.adapters.slack_wire import SlackWire
from tests.adapters.telegram_wire import TOKEN, TelegramWire
from tests.siege.cut_calls import CutCalls, CutSends, Kill
from tests.siege.hooks import LATELY, find_noted, take_running
from tests.siege.model import RUNNING, WRITTEN, Model, write_down
from tests.spine import until

GLANCE = 0.05
SENDS = {
    TelegramWire: (f"/bot{TOKEN}/sendMessage", {"data": {"chat_id": "1001", "text": "hi"}}),
    DiscordWire: ("/api/v10/channels/1/messages", {"json": {"content": "hi"}}),
    SlackWire: ("/api/chat.postMessage", {"data": {"channel": "C1", "text": "hi"}}),
}


async def call(url: str, asked: dict[str, Any], seconds: float) -> Kill:
    """As a gateway that lives for so long."""
    begun = time.monotonic()
    limit = aiohttp.ClientTimeout(total=seconds)
    try:
        async with aiohttp.ClientSession(timeout=limit) as client, client.post(url, **asked) as answer:
            await answer.read()
    except TimeoutError:  # it is dead
        pass
    return Kill(begun, time.monotonic(), 0)


async def see_hits(calls: CutCalls, url: str, asked: dict[str, Any]) -> None:
    """Only who is gone in the middle of a call has been hit."""
    lived = [await call(url, asked, 60.0) for _ in range(3)]
    assert calls.spans == []
    died: list[Kill] = []
    while not calls.spans:
        died.append(await call(url, asked, GLANCE))
        await asyncio.sleep(GLANCE)
    assert calls.count_hit(lived) == 0
    assert calls.count_hit(died) >= 1


@pytest.mark.parametrize("network", SENDS)
async def test_a_send_is_cut_off_when_it_is_shown_and_nobody_waits_for_the_answer(network: Any) -> None:
    wire, sends = network(), CutSends()
    wire.middlewares.append(sends.delay)
    async with wire.serving():
        path, asked = SENDS[network]
        await see_hits(sends, wire.url + path, asked)


async def test_so_is_a_call_of_the_model() -> None:
    model = Model()
    async with model.serving():
        await see_hits(model.cut, f"{model.url}/chat/completions", {"json": {"messages": []}})


async def test_a_tool_is_cut_off_that_began_lately_and_does_not_end(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path / "home")
    folder, workspace = find_noted(gateway), gateway.home.own_folder / "workspace"
    folder.mkdir()
    workspace.mkdir(parents=True)
    long_ago = folder / f"{RUNNING}n000017"
    long_ago.touch()
    os.utime(long_ago, (time.time() - 2 * LATELY,) * 2)
    await anyio.run_process(write_down("n000027", 0), cwd=workspace)
    async with await anyio.open_process(write_down("n000007", 60), cwd=workspace, start_new_session=True) as shell:
        await until(lambda: "n000007" in (folder / WRITTEN).read_text(), "the tool")
        os.killpg(shell.pid, signal.SIGKILL)
    assert (take_running(gateway), take_running(gateway)) == (1, 0)
