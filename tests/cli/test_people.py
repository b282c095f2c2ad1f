"""The owner of a home, and the roles of people: with the real daemon, its commands, and a bot on loopback."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER
from gateway.worker.sandbox import find_support
from tests.adapters.telegram_wire import TOKEN, TelegramWire
from tests.spine import until

pytestmark = pytest.mark.process


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def gateway(wire: TelegramWire, tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"text": "I heard you."})
        gateway.environ |= wire.environ
        gateway.environ.pop("TELEGRAM_ALLOWED_USERS", None)
        yield gateway


async def cli(gateway: GatewayProcess, *args: str) -> "subprocess.CompletedProcess[str]":
    return await to_thread.run_sync(partial(gateway.cli, *args))


async def status(gateway: GatewayProcess) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await cli(gateway, "status", "--json")).stdout)
    return found


async def answer(wire: TelegramWire, text: str, **how: Any) -> str:
    before = len(wire.shown)
    await wire.write(text, **how)
    await until(lambda: len(wire.shown) > before, f"the answer to {text}")
    return wire.shown[-1].text


async def reload(gateway: GatewayProcess, text: str) -> None:
    """Change `.env`, and have it read again."""
    gateway.home.env.write_text(text)
    gateway.home.env.chmod(0o600)
    before = gateway.home.log.read_text().count("was reloaded")
    assert gateway.process
    gateway.process.send_signal(signal.SIGHUP)
    await until(lambda: gateway.home.log.read_text().count("was reloaded") > before, "the configuration")


@pytest.mark.row("T9")
async def test_the_only_one_whom_hermess_list_names_is_the_owner_until_a_line_says_otherwise(
    wire: TelegramWire, gateway: GatewayProcess
) -> None:
    gateway.home.env.parent.mkdir(parents=True, exist_ok=True)
    gateway.home.env.write_text(f"TELEGRAM_ALLOWED_USERS={ANN}\n")
    gateway.home.env.chmod(0o600)
    await to_thread.run_sync(gateway.start)
    line = f'access: {{owners: {{telegram: ["{ANN}"]}}}}'
    assert json.dumps(line)[1:-1] in gateway.home.log.read_text()
    assert (await status(gateway))["owners"] == [
        {"platform": "telegram", "user_id": ANN, "why": "alone in the lists there"}
    ]
    assert f"telegram {ANN} (alone in the lists there)" in (await cli(gateway, "status")).stdout
    assert ", owner;" in await answer(wire, "/whoami", by=ANN)

    await reload(gateway, f"TELEGRAM_ALLOWED_USERS={ANN},{BEN}\n")
    assert ", owner;" in await answer(wire, "/whoami", by=ANN)
    assert ", user;" in await answer(wire, "/whoami", by=BEN)
    assert (await status(gateway))["attention"] == []

    await reload(gateway, f"TELEGRAM_ALLOWED_USERS={ANN},{BEN}\nGATEWAY_ACCESS_OWNERS_TELEGRAM={BEN}\n")
    assert ", user;" in await answer(wire, "/whoami", by=ANN)
    assert ", owner;" in await answer(wire, "/whoami", by=BEN)

    await reload(gateway, f"TELEGRAM_ALLOWED_USERS={BEN},7007\n")
    (said,) = (await status(gateway))["attention"]
    assert f'name an owner in config.yaml: access: {{owners: {{telegram: ["{BEN}"]}}}}' in said
    assert f"(whichever of {BEN}, 7007 is you)" in said
    assert ", user;" in await answer(wire, "/whoami", by=BEN)


@pytest.mark.row("T18")
async def test_who_is_let_in_as_more_than_a_user_is_that_wherever_they_write(
    wire: TelegramWire, gateway: GatewayProcess
) -> None:
    await to_thread.run_sync(gateway.start)
    code = (await answer(wire, "hello", by=STRANGER)).split("code is ")[1][:8]
    healthy = await cli(gateway, "doctor", "--json")
    assert json.loads(healthy.stdout)["ok"], healthy.stdout
    assert any("asks for access" in one for one in (await status(gateway))["notices"])
    refused = await cli(gateway, "pairing", "approve", code, "--as", "king")
    assert (refused.returncode, "king" in refused.stderr) == (2, True)
    given = await cli(gateway, "pairing", "approve", code, "--as", "owner", "--json")
    assert json.loads(given.stdout)["role"] == "owner"
    await until(lambda: "You can use this bot now" in wire.shown[-1].text, "the welcome")
    assert ", owner;" in await answer(wire, "/whoami", by=STRANGER)
    assert ", owner;" in await answer(wire, "/whoami", by=STRANGER, chat=GROUP)

    asked = (await answer(wire, "hello", by=BEN)).split("code is ")[1][:8]
    assert "owner is made where the gateway runs" in (
        await answer(wire, f"/pairing approve {asked} --as owner", by=STRANGER)
    )
    await wire.write(f"/pairing approve {asked} \N{EM DASH}as admin", by=STRANGER)
    await until(lambda: any("may write to the bot now, as admin" in one.text for one in wire.shown), "the second one")
    assert "paired as admin" in (await cli(gateway, "pairing", "list")).stdout

    third = (await answer(wire, "hello", by="7007")).split("code is ")[1][:8]
    await wire.write(f"/pairing approve {third}", by=BEN)
    await until(lambda: any("may write to the bot now, as user" in one.text for one in wire.shown), "the third one")
    before = len(wire.shown)
    await wire.write("/whoami", by="7007", chat=GROUP)
    assert ", user;" in await answer(wire, "/whoami", by="7007")
    assert [one.chat for one in wire.shown[before:]] == ["7007"]

    assert "more than you are" in await answer(wire, f"/pairing approve telegram:{STRANGER} --as user", by=BEN)
    assert "An owner is made where" in await answer(wire, "/pairing approve telegram:7007 --as owner", by=BEN)
    before = len(wire.shown)
    raised = await cli(gateway, "pairing", "approve", "telegram:7007", "--as", "admin", "--json")
    assert json.loads(raised.stdout)["role"] == "admin"
    assert ", admin;" in await answer(wire, "/whoami", by="7007", chat=GROUP)
    assert not [one for one in wire.shown[before:] if "You can use" in one.text], "the welcome comes once"
    nobody = await cli(gateway, "pairing", "approve", "telegram:7008", "--as", "admin")
    assert (nobody.returncode, "the code was not found" in nobody.stderr) == (1, True)


@pytest.mark.row("T9")
@pytest.mark.parametrize(
    ("allowed", "typed", "owner"),
    [(ANN, "\n", ANN), (ANN, "n\n", ""), (f"{ANN},{BEN}", f"{BEN}\n", BEN), (f"{ANN},{BEN}", "\n", "")],
)
def test_setup_asks_who_of_them_is_the_owner_and_writes_it(
    tmp_path: Path, allowed: str, typed: str, owner: str
) -> None:
    gateway = GatewayProcess(tmp_path / "home")
    gateway.configure("")
    keeper, end = pty.openpty()
    given = ["setup", "telegram", "--token", TOKEN, "--allow", allowed, "--home-channel", ANN, "--no-check"]
    command = [sys.executable, "-m", "gateway.cli", *given]
    os.write(keeper, f"{typed}\n\n".encode())  # nobody else approves, and nothing about the shell
    done = subprocess.run(command, env=gateway.environ, stdin=end, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    os.close(keeper)
    os.close(end)
    kept = [line for line in gateway.home.env.read_text().splitlines() if "OWNERS" in line]
    assert kept == ([f"GATEWAY_ACCESS_OWNERS_TELEGRAM={owner}"] if owner else [])


@pytest.mark.skipif(not find_support().landlock, reason="this kernel has no Landlock")
@pytest.mark.parametrize(("typed", "kept"), [("y\n", ["GATEWAY_TOOLS_SHELL=sandboxed"]), ("\n", [])])
def test_setup_offers_to_run_commands_in_the_sandbox(tmp_path: Path, typed: str, kept: list[str]) -> None:
    gateway = GatewayProcess(tmp_path / "home")
    gateway.configure("")
    keeper, end = pty.openpty()
    given = ["setup", "telegram", "--token", TOKEN, "--allow", ANN, "--home-channel", ANN, "--owner", ANN, "--no-check"]
    os.write(keeper, typed.encode())
    done = subprocess.run(
        [sys.executable, "-m", "gateway.cli", *given],
        env=gateway.environ,
        stdin=end,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(keeper)
    os.close(end)
    assert done.returncode == 0, done.stderr
    assert [line for line in gateway.home.env.read_text().splitlines() if "SHELL" in line] == kept
