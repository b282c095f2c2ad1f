"""`hermes-gateway approvals`, and an approval that outlives the gateway, with the real daemon and a bot on loopback."""

import json
import subprocess
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, Shown
from tests.adapters.telegram_wire import TelegramWire
from tests.spine import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(90)]

COMMAND = "echo 'it\x1b[31mran'; id -u"
RUN = {"tool_calls": [{"name": "shell", "args": {"command": COMMAND}}]}
TURN = {"user": "run", "answers": [RUN, {"text": "Did."}]}
BOOT = {"user": "boot.md", "answers": [RUN, {"text": "All is well."}]}
NOTE = "An approver was notified"
PEOPLE = f"owners: {{telegram: ['{ANN}']}}, users: {{telegram: ['{BEN}']}}"
SETTINGS = f"access: {{{PEOPLE}, tools: {{user: [shell]}}}}\n"


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def gateway(wire: TelegramWire, tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.environ |= wire.environ
        gateway.environ.pop("TELEGRAM_ALLOWED_USERS", None)
        yield gateway


async def cli(gateway: GatewayProcess, *args: str) -> "subprocess.CompletedProcess[str]":
    return await to_thread.run_sync(partial(gateway.cli, *args))


async def begin(gateway: GatewayProcess, turn: Any = TURN, settings: str = SETTINGS) -> None:
    gateway.script(turn, settings=settings)
    await to_thread.run_sync(gateway.start)


async def listed(gateway: GatewayProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((await cli(gateway, "approvals", "list", "--json")).stdout)["approvals"]
    return found


async def question(wire: TelegramWire) -> Shown:
    await until(lambda: any(one.buttons for one in wire.shown), "the question")
    (found,) = [one for one in wire.shown if one.buttons]
    return found


async def everything_sent(gateway: GatewayProcess, wire: TelegramWire) -> None:
    """Until the gateway knows that the question and the note have arrived: what is in doubt would be sent again."""
    await until(lambda: bool(said(wire, NOTE)), "the note")
    idle = partial(gateway.until, lambda: not any(gateway.call("status")["backlog"]["replies"].values()))
    await to_thread.run_sync(idle)


def said(wire: TelegramWire, text: str) -> list[Shown]:
    return [one for one in wire.shown if text in one.text]


@pytest.mark.parametrize(("verb", "word"), [("yes", "Allowed"), ("no", "Refused")])
async def test_the_owner_sees_on_the_host_what_would_run_and_answers_there(
    gateway: GatewayProcess, wire: TelegramWire, verb: str, word: str
) -> None:
    await begin(gateway)
    await wire.write("run it", by=BEN)
    asked = await question(wire)
    shown = (await cli(gateway, "approvals", "list")).stdout
    assert "\x1b" not in shown
    assert r"echo 'it\u001b[31mran'; id -u" in shown
    assert f"telegram {BEN}" in shown
    (one,) = await listed(gateway)
    assert (one["calls"], one["user_id"]) == ([{"tool": "shell", "args": {"command": COMMAND}}], BEN)
    done = await cli(gateway, "approvals", verb, one["id"], "--json")
    assert json.loads(done.stdout) == {"schema_version": 1, "id": one["id"], "allowed": verb == "yes"}
    await until(lambda: bool(said(wire, "Did.")), "the end of the turn")
    await until(lambda: not asked.buttons and f"{word} by terminal owner" in asked.text, "the end of the question")
    assert await listed(gateway) == []
    assert "nothing waits" in (await cli(gateway, "approvals")).stdout
    again = await cli(gateway, "approvals", "yes", one["id"])
    assert (again.returncode, "is open" in again.stderr) == (1, True)


async def test_a_question_says_which_hook_asks_it(gateway: GatewayProcess, wire: TelegramWire) -> None:
    handler = "def handle(event_type, context):\n    context.ask('Shall it?')\n"
    gateway.add_hook("careful", {"HOOK.yaml": "intercepts: [tool:before]\n", "handler.py": handler})
    await begin(gateway, settings=f"access: {{{PEOPLE}, tools: {{user: [shell]}}}}\ntools: {{shell: allow}}\n")
    await wire.write("run it", by=BEN)
    await question(wire)
    assert "the hook careful asks:\n  Shall it?" in (await cli(gateway, "approvals")).stdout
    (one,) = await listed(gateway)
    assert one["hooks"] == ["careful"]


async def test_a_question_outlives_the_gateway_and_is_asked_once(gateway: GatewayProcess, wire: TelegramWire) -> None:
    await begin(gateway)
    await wire.write("run it", by=BEN)
    asked = await question(wire)
    await everything_sent(gateway, wire)
    for _ in range(2):
        gateway.kill()
        await to_thread.run_sync(gateway.start)
    assert len(await listed(gateway)) == 1
    assert len([one for one in wire.shown if one.buttons]) == 1
    await wire.press(asked, "Yes", by=ANN)
    await until(lambda: bool(said(wire, "Did.")), "the end of the turn")
    await until(lambda: not asked.buttons and "Allowed by" in asked.text, "the end of the question")
    assert len(said(wire, NOTE)) == 1
    assert [one.chat for one in said(wire, "Did.")] == [BEN]


async def test_what_is_answered_while_nobody_could_close_it_is_closed_afterwards(
    gateway: GatewayProcess, wire: TelegramWire
) -> None:
    await begin(gateway)
    await wire.write("run it", by=BEN)
    asked = await question(wire)
    await everything_sent(gateway, wire)
    (one,) = await listed(gateway)
    gateway.kill()
    # The network refuses edits until the gateway is started once more.
    wire.forbid_edits = True
    await to_thread.run_sync(gateway.start)
    await cli(gateway, "approvals", "yes", one["id"])
    await until(lambda: bool(said(wire, "Did.")), "the end of the turn")
    gateway.kill()
    assert asked.buttons
    wire.forbid_edits = False
    await to_thread.run_sync(gateway.start)
    await until(lambda: not asked.buttons and "Allowed by" in asked.text, "the end of the question")


async def test_one_person_alone_goes_on_as_before(gateway: GatewayProcess, wire: TelegramWire) -> None:
    """A home from Hermes names them by TELEGRAM_ALLOWED_USERS alone."""
    gateway.environ["TELEGRAM_ALLOWED_USERS"] = ANN
    await begin(gateway, settings="")
    await wire.write("run it")
    asked = await question(wire)
    assert (asked.chat, list(asked.buttons)) == (ANN, ["Yes", "For this session", "Always", "No"])
    await wire.press(asked, "Always")
    await until(lambda: bool(said(wire, "Did.")), "the end of the turn")
    await wire.write("run it")
    await until(lambda: len(said(wire, "Did.")) == 2, "no second question")
    assert not [one for one in wire.shown if one.buttons]


async def test_boot_md_asks_and_goes_on_without_and_says_so(gateway: GatewayProcess, wire: TelegramWire) -> None:
    gateway.home.root.mkdir(parents=True, exist_ok=True)
    gateway.home.boot_md.write_text("Look at the disks.")
    boot = f"hooks: {{boot-md: {{options: {{deliver: 'telegram:{ANN}'}}}}}}\ntools: {{unattended: 3s}}\n"
    await begin(gateway, BOOT, SETTINGS + boot)
    asked = await question(wire)
    assert asked.chat == ANN
    assert "Unattended work" in asked.text
    await until(lambda: bool(said(wire, "All is well.")), "the answer")
    assert "Done without shell: no approval came in time." in said(wire, "All is well.")[0].text
    (line,) = [one for one in (await cli(gateway, "doctor")).stdout.splitlines() if "needs an approver for" in one]
    assert "shell" in line
    assert "shell" in json.loads((await cli(gateway, "doctor", "--json")).stdout)["unattended"]
