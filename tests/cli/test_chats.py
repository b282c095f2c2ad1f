"""`setup`, `send`, `pairing` and `platform`, as a person or a script types them, with a bot on loopback."""

import json
import subprocess
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread

from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, STRANGER
from tests.adapters.telegram_wire import TOKEN, TelegramWire
from tests.spine import until

pytestmark = pytest.mark.process
WRONG = "999999:" + "x" * 35


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def gateway(wire: TelegramWire, tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "what is", "answers": [{"text": "It is 42."}]})
        gateway.environ |= {name: value for name, value in wire.environ.items() if name.endswith("URL")}
        yield gateway


async def cli(gateway: GatewayProcess, *args: str) -> "subprocess.CompletedProcess[str]":
    return await to_thread.run_sync(partial(gateway.cli, *args))


async def test_setup_tries_the_token_writes_it_and_says_hello(wire: TelegramWire, gateway: GatewayProcess) -> None:
    env = gateway.home.env
    env.write_text("# mine\nOTHER=1\nTELEGRAM_HOME_CHANNEL=5\nLAST=x")
    env.chmod(0o600)
    done = await cli(gateway, "setup", "telegram", "--token", TOKEN, "--allow", f"{ANN}, {BEN}", "--home-channel", ANN)
    assert done.returncode == 0, done.stderr
    assert "@gate_bot" in done.stdout
    assert "https://t.me/gate_bot" in done.stdout
    assert TOKEN not in done.stdout + done.stderr
    assert [one.chat for one in wire.shown] == [ANN]
    lines = env.read_text().splitlines()
    assert lines[:4] == ["# mine", "OTHER=1", f"TELEGRAM_HOME_CHANNEL={ANN}", "LAST=x"]
    assert set(lines[4:]) == {f"TELEGRAM_BOT_TOKEN={TOKEN}", f"TELEGRAM_ALLOWED_USERS={ANN},{BEN}"}
    assert env.stat().st_mode & 0o777 == 0o600
    again = await cli(gateway, "setup", "telegram", "--no-hello")
    assert "has all of it already" in again.stdout


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (WRONG, "Telegram does not know the bot's token"),
        ("hello", "does not look like one"),
        ("", "nobody can be asked"),
    ],
)
async def test_setup_writes_nothing_that_is_not_good(
    wire: TelegramWire, gateway: GatewayProcess, token: str, said: str
) -> None:
    done = await cli(gateway, "setup", "telegram", "--token", token)
    assert done.returncode != 0
    assert said in done.stderr
    assert ("--no-check" in done.stderr) is (token == WRONG)
    assert not gateway.home.env.exists()


async def test_setup_does_not_write_through_a_link(gateway: GatewayProcess, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("OTHER=1\n")
    target.chmod(0o600)
    gateway.home.env.symlink_to(target)
    done = await cli(gateway, "setup", "telegram", "--token", TOKEN, "--no-check")
    assert done.returncode != 0
    assert target.read_text() == "OTHER=1\n"


async def test_send_pairing_and_platform(wire: TelegramWire, gateway: GatewayProcess, tmp_path: Path) -> None:
    """One gateway, from the first stranger to the pause."""
    gateway.environ |= {**wire.environ, "TELEGRAM_HOME_CHANNEL": ANN}
    await to_thread.run_sync(gateway.start)
    await wire.write("hello", by=STRANGER)
    await until(lambda: bool(wire.shown), "the code")
    asks = json.loads((await cli(gateway, "pairing", "list", "--json")).stdout)["asking"]
    assert [(one["platform"], one["user_id"]) for one in asks] == [("telegram", STRANGER)]
    wrong = await cli(gateway, "pairing", "approve", "WRONG")
    assert (wrong.returncode, "the code was not found" in wrong.stderr) == (1, True)
    assert "#1" in (await cli(gateway, "pairing", "list")).stdout
    by_number = await cli(gateway, "pairing", "approve", "#7")
    assert (by_number.returncode, "no pairing request has the number 7" in by_number.stderr) == (1, True)
    code = wire.shown[0].text.split("code is ")[1][:8]
    assert "may write to the bot now" in (await cli(gateway, "pairing", "approve", code)).stdout
    await wire.write("what is it?", by=STRANGER)
    await until(lambda: any(one.text == "It is 42." for one in wire.shown), "the answer")

    picture = tmp_path / "chart.png"
    picture.write_bytes(b"png")
    sent = await cli(gateway, "send", "--to", "telegram", "--json", "--file", str(picture), "the", "report")
    assert json.loads(sent.stdout)["state"] == "sent", sent.stderr
    assert [(one.chat, one.text, one.file) for one in wire.shown[-1:]] == [(ANN, "the report", b"png")]
    wire.forbid(BEN)
    refused = await cli(gateway, "send", "--to", f"telegram:{BEN}", "hello")
    assert (refused.returncode, "lets us not write there" in refused.stderr) == (1, True)
    nowhere = await cli(gateway, "send", "--to", "slack", "hello")
    assert (nowhere.returncode, "no bot token" in nowhere.stderr) == (1, True)

    listed = await cli(gateway, "platform", "list")
    assert "@gate_bot" in listed.stdout
    assert "last probe" in listed.stdout
    assert "paused" in (await cli(gateway, "platform", "pause", "telegram")).stdout
    owed = await cli(gateway, "send", "--to", "telegram", "later")
    assert (owed.returncode, "not sent yet" in owed.stderr) == (4, True)
    (listed_now,) = json.loads((await cli(gateway, "platform", "list", "--json")).stdout)["platforms"]
    assert (listed_now["state"], listed_now["up"]) == ("paused", False)
    assert "goes on" in (await cli(gateway, "platform", "resume", "telegram")).stdout
    await until(lambda: wire.shown[-1].text == "later", "what was owed")
    await cli(gateway, "pairing", "revoke", "telegram", STRANGER)
    await wire.write("what is it?", by=STRANGER)
    await until(lambda: "pairing code" in wire.shown[-1].text, "the door")
    assert "may write to the bot now" in (await cli(gateway, "pairing", "approve", "#2")).stdout


async def test_an_invitation_to_a_gateway_without_a_network_says_that_there_is_none(gateway: GatewayProcess) -> None:
    await to_thread.run_sync(gateway.start)
    made = await cli(gateway, "pairing", "invite")
    assert made.returncode == 0
    assert "no bot is connected yet that could take `/start " in " ".join(made.stdout.split())
    assert "setup --help" in made.stdout


async def test_who_is_invited_comes_by_a_link_that_is_good_once(wire: TelegramWire, gateway: GatewayProcess) -> None:
    gateway.environ |= wire.environ
    await to_thread.run_sync(gateway.start)
    await until(lambda: all(one["up"] for one in gateway.call("platform.list")["platforms"]), "the network")
    for lasts in ("8d", "10s"):
        refused = await cli(gateway, "pairing", "invite", "--for", lasts)
        assert (refused.returncode, "from a minute to seven days" in refused.stderr) == (1, True)
    wrong = await cli(gateway, "pairing", "invite", "--for", "soon")
    assert (wrong.returncode, "how long it is valid" in wrong.stderr) == (2, True)
    gone = json.loads((await cli(gateway, "pairing", "invite", "--json")).stdout)
    assert "no longer valid" in (await cli(gateway, "pairing", "uninvite", f"#{gone['number']}")).stdout
    made = await cli(gateway, "pairing", "invite", "--as", "admin", "--for", "7d")
    code = made.stdout.split("telegram: https://t.me/gate_bot?start=")[1].split()[0]
    assert (
        "an invitation as admin, by the person who runs this gateway" in (await cli(gateway, "pairing", "list")).stdout
    )
    await wire.write(f"/start {gone['ways'][0]['text'].rpartition('=')[2]}", by=STRANGER)
    await until(lambda: "no longer valid" in str(wire.shown), "the refusal")
    await wire.write(f"/start {code}", by=STRANGER)
    await until(lambda: "You can use this bot now" in str(wire.shown), "the door")
    assert "paired as admin" in (listed := (await cli(gateway, "pairing", "list")).stdout)
    assert "invitation" not in listed
