"""Several bots of one network: each has a name, under which it is reported, kept and steered."""

import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.loading import load_configuration, read_configuration
from gateway.config.platform_settings import list_accounts
from gateway.daemon.platforms import steer_platform
from gateway.daemon.status import StatusReport
from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed, variables_of
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER
from tests.adapters.bot_pairs import WORK_TOKEN, WorkWire
from tests.adapters.telegram_wire import TelegramWire
from tests.spine import until

HOME_CHANNEL = "SLACK_HOME_CHANNEL_WORK=C0123456789\n"


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def work(wire: TelegramWire, tmp_path: Path) -> AsyncIterator[House]:
    async with housed(wire, tmp_path / "home", account="work") as house:
        yield house


async def test_a_bot_with_a_name_is_called_by_it(work: House) -> None:
    wire, name = work.wire, f"{work.wire.network}:work"
    await wire.write("what is it?")
    (shown,) = await work.shows("It is 42.")
    (received,) = await work.hears("message:received")
    assert (received["platform"], received["account"]) == (wire.network, "work")
    assert received["session_key"] == f"agent:main:{name}:dm:{shown_chat(work)}"
    (sent,) = await work.hears("message:sent")
    assert (sent["account"], sent["message_ids"]) == ("work", [shown.id])
    status = await StatusReport(work.gateway.groups.bind).build()
    assert status["platforms"][name]["up"]
    assert wire.network in status["platforms_off"]


def shown_chat(house: House) -> str:
    """The id of Ann's own chat, as the gateway has it."""
    (received,) = house.told("message:received")
    return str(received["chat_id"])


async def test_a_bot_with_a_name_is_steered_by_it(work: House) -> None:
    wire, name = work.wire, work.name
    steer_platform(work.gateway.platforms, "pause", name)
    await until(lambda: not work.presence.up, "the pause")
    await wire.write("what is it?")
    steer_platform(work.gateway.platforms, "resume", name)
    await work.shows("It is 42.")
    (down,), up = work.told("platform:down"), work.told("platform:up")
    assert down["account"] == "work"
    assert {one["account"] for one in up} == {"work"}


async def test_what_is_sent_to_a_bot_by_its_name_goes_out_by_it(work: House) -> None:
    await work.wire.write("what is it?")
    await work.shows("It is 42.")
    chat = shown_chat(work)
    for number, to in enumerate((f"{work.name}:{chat}", f"{work.wire.network}:{chat}")):
        address = work.gateway.groups.turns.context.places.resolve_destination(to)
        assert (address.platform, address.account, address.chat_id) == (work.wire.network, "work", chat), number
    await work.gateway.groups.turns.hook_requests("lunch", "send", {"to": f"{work.name}:{chat}", "text": "Lunch?"}, "")
    (shown,) = await work.shows("Lunch?")
    assert shown.chat == ANN


async def test_files_lie_with_the_bot_that_got_them(work: House) -> None:
    await work.wire.upload(("letter.pdf", b"%PDF-1.4 a letter"))
    (received,) = await work.hears("message:received")
    path = Path(received["attachments"][0]["path"])
    assert path.parent.parent.name == f"{work.wire.network}%3Awork"


async def test_in_a_group_it_answers_when_it_is_called(work: House) -> None:
    await work.wire.mention("what is it?")
    (shown,) = await work.shows("It is 42.")
    assert shown.chat == GROUP


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[tuple[House, WorkWire]]:
    """Yield the unnamed bot's wire, with all its events; and the wire of `work`."""
    first, second = TelegramWire(), WorkWire()
    admins = f"access: {{admins: {{telegram: ['{ANN}']}}}}\n"
    async with first.serving(), second.serving():
        settings = admins + "agents: {sales: {}}\nroutes: [{account: work, agent: sales}]\n"
        async with housed(second, tmp_path / "home", settings=settings, beside=[first], account="work") as house:
            await until(lambda: all(one.presence.facts.up for one in house.gateway.platforms), "both bots")
            yield House(first, house.gateway, house.events), second


@pytest.mark.row("T18")
async def test_who_is_let_in_by_one_bot_is_a_stranger_to_the_other(both: tuple[House, WorkWire]) -> None:
    house, work = both
    await work.write("hello", by=STRANGER)
    await until(lambda: any("pairing code" in one.text for one in work.shown), "the code")
    code = work.shown[-1].text.split("code is ")[1][:8]
    await house.wire.write(f"/pairing approve {code}")
    await until(lambda: any("You can use this bot now" in one.text for one in work.shown), "the welcome")
    await work.write("what is it?", by=STRANGER)
    await until(lambda: any("It is 42." in one.text for one in work.shown), "the answer")
    await house.wire.write("what is it?", by=STRANGER)
    await house.shows("pairing code")
    await house.wire.write("/pairing")
    await house.shows(f"telegram:work {STRANGER}")


async def test_each_bot_shows_that_it_works_in_its_own_chats(tmp_path: Path) -> None:
    first, second = TelegramWire(), WorkWire()
    slow = {"chunks": ["It ", "is ", "42."], "delay": "400ms"}
    async with (
        first.serving(),
        second.serving(),
        housed(second, tmp_path / "home", slow, beside=[first], account="work") as house,
    ):
        await until(lambda: all(one.presence.facts.up for one in house.gateway.platforms), "both bots")
        await second.write("hello")
        await until(lambda: second.signs(ANN) > 0, "the sign")
        assert first.signs(ANN) == 0


CASES = {
    "accounts: {Work: {}}": "is not a valid bot name",
    "accounts: {group: {}}": "is not a valid bot name",
    "accounts: {name: {}}": "means something else already",
    "accounts: {work: {enabled: true}}": "TELEGRAM_BOT_TOKEN_WORK is not set",
}


@pytest.mark.parametrize("written", CASES)
def test_what_is_wrong_with_an_account_is_said(written: str, tmp_path: Path) -> None:
    findings = find_faults(tmp_path, f"platforms: {{telegram: {{{written}}}}}\n", {})
    assert any(CASES[written] in str(one) for one in findings), findings


def test_two_accounts_with_one_token_are_refused(tmp_path: Path) -> None:
    environ = {"TELEGRAM_BOT_TOKEN": WORK_TOKEN, "TELEGRAM_BOT_TOKEN_WORK": WORK_TOKEN}
    findings = find_faults(tmp_path, "platforms: {telegram: {accounts: {work: {}}}}\n", environ)
    assert any("telegram:work has the same token as telegram" in str(one) for one in findings), findings
    assert WORK_TOKEN not in str(findings)


def find_faults(tmp_path: Path, written: str, environ: dict[str, str]) -> list[Any]:
    started = GatewayProcess(tmp_path / "home")
    started.configure(written)
    return read_configuration(load_settings_schema(), started.home, {**started.environ, **environ})[1]


def test_what_is_set_for_an_account_is_a_secret_where_the_networks_is(tmp_path: Path) -> None:
    started = GatewayProcess(tmp_path / "home")
    started.configure("platforms: {slack: {accounts: {work: {}}}}\n")
    found = {"SLACK_BOT_TOKEN_WORK": "xoxb-one-two-three", "SLACK_SIGNING_SECRET_WORK": "plainwordsonly"}
    started.home.env.write_text("".join(f"{name}={value}\n" for name, value in found.items()) + HOME_CHANNEL)
    configuration = load_configuration(load_settings_schema(), started.home, started.environ)
    assert set(found.values()) <= configuration.secrets
    assert "C0123456789" not in configuration.secrets
    (work,) = (one for one in list_accounts(configuration.settings.platforms) if one.account)
    assert (work.name, work.settings.home_channel) == ("slack:work", "C0123456789")


async def test_whoever_is_forgotten_is_forgotten_with_every_bot(tmp_path: Path) -> None:
    first, second = TelegramWire(), WorkWire()
    async with first.serving(), second.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.script(*({"text": "I heard."},) * 9)
            gateway.environ |= {
                **variables_of(second, "work", gateway.home),
                **first.environ,
                "TELEGRAM_ALLOWED_USERS": f"{ANN},{BEN}",
            }
            await to_thread.run_sync(gateway.start)
            for bot in (first, second):
                await bot.write("a secret of mine: greengage")
                await bot.upload(("letter.pdf", b"%PDF greengage"))
                await until(lambda bot=bot: len(bot.shown) == 2, "both answers")  # type: ignore[misc]
            done = await to_thread.run_sync(partial(gateway.cli, "people", "show", f"telegram:{ANN}", "--json"))
            (shown,) = json.loads(done.stdout)["people"]
            assert (len(shown["conversations"]), shown["files"]) == (2, 2)
            done = await to_thread.run_sync(partial(gateway.cli, "people", "forget", f"telegram:{ANN}", "--yes"))
            assert done.returncode == 0, done.stderr
            assert not [path for path in gateway.home.files.rglob("*") if path.is_file()]
            done = await to_thread.run_sync(partial(gateway.cli, "sessions", "list", "--json"))
            assert not json.loads(done.stdout)["sessions"]


async def test_a_bot_with_a_name_goes_on_where_a_kill_cut_it_off(tmp_path: Path) -> None:
    wire = WorkWire()
    async with wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.script({"text": "It is 42.", "delay": "1s"}, *({"text": "I heard."},) * 5)
            gateway.environ |= {**variables_of(wire, "work", gateway.home), "TELEGRAM_ALLOWED_USERS": ANN}
            await to_thread.run_sync(gateway.start)
            await wire.write("what is it?")
            await until(lambda: wire.signs(ANN) > 0, "the turn")
            await to_thread.run_sync(gateway.kill)
            await wire.write("are you there?")
            await to_thread.run_sync(gateway.start)
            await until(lambda: len(wire.shown) >= 2, "both answers")
            assert len(wire.shown) == 2
