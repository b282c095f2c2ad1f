"""Two machines: the page of one proposes, the bot of the other asks and hears the answer."""

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.questions.proposals import DESK, Proposal
from gateway.testing import GatewayProcess, gateway_in
from gateway.testing.networks.wire import ANN
from tests.adapters.telegram_wire import TelegramWire
from tests.engine.nats_servers import run_servers
from tests.spine import until
from tests.web.logged_in import log_in

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

ROLES = {"bot": "[ingress, lanes]", "page": "[web, hooks]"}


def begin(gateway: GatewayProcess, name: str, url: str, wire: TelegramWire) -> None:
    gateway.environ |= wire.environ
    access = f"access: {{owners: {{telegram: ['{ANN}']}}}}\n"
    node = f"engine: {url}\nnode: {{name: {name}, roles: {ROLES[name]}}}\n"
    gateway.script(*({"user": "", "text": "Hello."},) * 9, settings=access + node)
    gateway.process = gateway.spawn("run")


async def test_it_is_written_where_its_page_was_and_ends_with_that_process(tmp_path: Path) -> None:
    wire = TelegramWire()
    with run_servers(tmp_path / "nats", 1) as (server,):
        async with wire.serving():
            with GatewayProcess(tmp_path / "a" / "home") as bot, GatewayProcess(tmp_path / "b" / "home") as page:
                for name, gateway in (("bot", bot), ("page", page)):
                    begin(gateway, name, server.url, wire)
                for gateway in (bot, page):
                    await to_thread.run_sync(gateway.until, gateway._is_ready, 60)
                await wire.write("hello")
                await until(lambda: any(one.text == "Hello." for one in wire.shown), "the answer", 60)
                kept = bot.home.config.read_text()

                shown = await propose(page, wire)
                assert "It is done on the machine:" in shown.text
                assert shown.text.rpartition("It is done on the machine:")[2].split()[0].strip("`") == "page"
                await wire.press(shown, "Yes", by=ANN)
                await until(lambda: not shown.buttons and "in force" in shown.text, "the end", 60)
                assert f" (telegram:{ANN}). written to {page.home.config};" in shown.text
                assert ("idle: 3h" in page.home.config.read_text(), bot.home.config.read_text()) == (True, kept)

                shown, before = await propose(page, wire), page.home.config.read_text()
                await to_thread.run_sync(page.kill)  # its machine vanishes, and the other one says so
                await wire.press(shown, "Yes", by=ANN)
                await until(lambda: "look whether it took effect" in shown.text, "its end", 60)
                assert bot.call("proposals.list")["proposals"][0]["state"] == "failed"
                page.process = page.spawn("run")
                await to_thread.run_sync(page.until, page._is_ready, 60)
                assert page.home.config.read_text() == before

                shown = await propose(page, wire)
                await to_thread.run_sync(page.kill)
                await until(lambda: not shown.buttons and "does not answer any more" in shown.text, "its end", 60)


async def test_a_question_of_the_desk_is_its_caller_s_to_end(tmp_path: Path) -> None:
    async with gateway_in(tmp_path / "home", {"user": "", "text": "Hello."}) as live:
        proposals, now = live.gateway.groups.turns.proposals, time.time()
        asked = Proposal(
            id="q",
            kind=DESK,
            name="Bash",
            by="desk:claude:q",
            place="/home/ann",
            node="another",
            run="12-345",
            at=now,
            until=now + 600,
            mark="m",
        )
        await proposals.journal.write(asked, 0)
        for _ in range(3):
            assert await proposals._end_left({"12-345": True}) == {}
        assert (await proposals.journal.read(asked.by))[1] == asked


async def propose(page: GatewayProcess, wire: TelegramWire) -> Any:
    """Propose a setting on this page, and return the question in the owner's chat."""
    browser = await to_thread.run_sync(log_in, page)
    idle = "3h" if "idle: 3h" not in page.home.config.read_text() else "4h"
    make = partial(browser.do, "proposals.make", kind="settings", name="", values={"sessions.idle": idle})
    made = await to_thread.run_sync(make)
    assert (made.status, json.loads(made.body)["node"]) == (200, "page"), made
    return await until(
        lambda: next((one for one in wire.shown if "machine" in one.text and one.buttons), None), "it", 60
    )
