"""The checklist in the documentation of BOOT.md, on a running daemon with Discord: what the owner grants to it."""

import json
import shlex
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

import hooks_builtin
from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, GROUP
from tests.adapters.discord_facts import CHANNEL, SIDE_CHANNEL, channel_of
from tests.adapters.discord_wire import DiscordWire
from tests.spine import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

SAID = "Gateway restarted, all systems go"
# Word for word as Hermes documents it; a test puts the folder elsewhere than below /opt.
CHECKLIST = """\
# Startup Checklist

1. Check if any cron jobs failed overnight — run `hermes cron list`
2. Send a message to Discord #general saying "Gateway restarted, all systems go"
3. Check if /opt/app/deploy.log has any errors from the last 24 hours
"""
FIRST = "2030-01-02 03:04 ERROR the disk is full"


@pytest.fixture
async def wire() -> AsyncIterator[DiscordWire]:
    wire = DiscordWire()
    async with wire.serving():
        yield wire


@pytest.fixture
def log(tmp_path: Path) -> Path:
    log = tmp_path / "opt" / "app" / "deploy.log"
    log.parent.mkdir(parents=True)
    log.write_text(FIRST)
    return log


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        yield gateway
        await to_thread.run_sync(gateway.kill)


async def carry_out(wire: DiscordWire, gateway: GatewayProcess, log: Path, **options: Any) -> tuple[str, list[Any]]:
    """Start the gateway; return the ledger's line of the run, and the results of its tools."""
    command = f"cat {shlex.quote(str(log))}; touch {shlex.quote(str(log.parent / 'made'))}"
    calls = (
        {"name": "shell", "args": {"command": "hermes cron list"}},
        {"name": "send_message", "args": {"to": "discord:#general", "text": SAID}},
        {"name": "read_file", "args": {"path": str(log)}},
        {"name": "write_file", "args": {"path": str(log), "content": "gone"}},
        {"name": "shell", "args": {"command": command}},
    )
    turn = {"user": "startup checklist", "answers": [*({"tool_calls": [one]} for one in calls), {"text": "[SILENT]"}]}
    hooks = json.dumps({"boot-md": {"options": {"deliver": "terminal:ops", "min_interval": 0, **options}}})
    roots = json.dumps([str(gateway.home.root.parent / "work")])
    tools = f"{{unattended: 1s, shell: allow, roots: {roots}}}"
    gateway.script(turn, settings=f"hooks: {hooks}\ntools: {tools}\n{wire.own(ANN)}")
    gateway.home.boot_md.write_text(CHECKLIST.replace("/opt/app", str(log.parent)))
    await to_thread.run_sync(partial(gateway.start, environ=wire.environ))
    await until(lambda: list_runs(gateway), "the run")
    session = gateway.call("sessions.list")["sessions"][0]["session_key"]
    shown = gateway.call("sessions.show", {"session": session})
    return list_runs(gateway)[-1], [one["content"] for one in shown["entries"] if one["role"] == "tool"]


def list_runs(gateway: GatewayProcess) -> list[str]:
    return list(gateway.call("hooks.info", {"name": "boot-md"})["kept"].get("runs", []))


@pytest.mark.row("HRM-18", "HRM-19", "HRM-20")
async def test_what_the_owner_granted_is_done_without_a_question(
    wire: DiscordWire, gateway: GatewayProcess, log: Path
) -> None:
    run, (listed, sent, read, written, shell) = await carry_out(
        wire, gateway, log, may=["discord:#general"], read=[str(log.parent)]
    )
    (said,) = [one for one in wire.shown if one.text == SAID]
    assert said.chat == GROUP
    assert (listed, sent, read) == ("No jobs.", "It is being sent.", FIRST)
    assert "can be read here, and not written" in written
    assert shell.startswith(FIRST)
    assert list(log.parent.iterdir()) == [log]
    assert run.endswith("silent: [SILENT]")  # and not what went to another chat
    kept = gateway.call("hooks.info", {"name": "boot-md"})["kept"]
    assert kept["chats"] == {"discord:#general": f"discord:{CHANNEL} (general)"}
    told = f"BOOT.md may write to discord:#general, and read {log.parent}"
    assert told in gateway.cli("logs", "--lines", "500").stdout
    assert f"may write to discord:#general, read {log.parent}" in gateway.cli("security", "audit").stdout
    wire.channels[SIDE_CHANNEL] = channel_of(SIDE_CHANNEL)
    wire.event("CHANNEL_DELETE", wire.channels.pop(CHANNEL))
    await to_thread.run_sync(gateway.stop)
    await to_thread.run_sync(partial(gateway.start, environ=wire.environ))
    await until(lambda: len(list_runs(gateway)) == 2, "the second run")
    assert [one.chat for one in wire.shown if one.text == SAID] == [GROUP]
    told = f"discord:#general was discord:{CHANNEL} (general), and is discord:{SIDE_CHANNEL} (general) now"
    assert told in gateway.cli("logs", "--lines", "500").stdout


async def test_without_that_each_place_names_the_line_to_add(
    wire: DiscordWire, gateway: GatewayProcess, log: Path
) -> None:
    run, (_, sent, read, *_) = await carry_out(wire, gateway, log)
    assert sent != "It is being sent."
    line = json.dumps({"may": ["discord:#general"], "read": [str(log)]})
    line = f"Add to config.yaml: hooks: {{boot-md: {{options: {line}}}}}"
    assert "outside of what the agent may touch" in read
    assert "sent to terminal:ops" in run
    assert run.endswith(line)
    assert line in gateway.cli("hooks", "info", "boot-md").stdout.replace("\n", " ")
    assert line in gateway.cli("logs", "--lines", "500").stdout
    assert not [one for one in wire.shown if one.text == SAID]


async def test_a_folder_in_the_place_of_the_built_in_one_is_granted_nothing(
    wire: DiscordWire, gateway: GatewayProcess, log: Path
) -> None:
    gateway.script()
    own = Path(hooks_builtin.__file__).parent / "boot-md"
    gateway.add_hook("boot-md", {name: (own / name).read_text() for name in ("HOOK.yaml", "handler.py")})
    await carry_out(wire, gateway, log, may=["discord:#general"])
    assert not [one for one in wire.shown if one.text == SAID]
