"""Telegram in its other mode: it calls the gateway's port, and hears 200 for what is in the journal."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import anyio
import pytest

from gateway.adapters.telegram.updates import PendingUpdates
from gateway.adapters.telegram.webhook import has_chain
from gateway.people.person import Person
from gateway.people.traces import is_of
from gateway.records import records, subjects
from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN
from tests.adapters.telegram_calls_wire import TelegramCallsWire
from tests.adapters.telegram_wire import TOKEN
from tests.spine import until
from tests.web.test_port import write_certificate

SECRET = "X-Telegram-Bot-Api-Secret-Token"
PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.fixture
async def wire() -> AsyncIterator[TelegramCallsWire]:
    wire = TelegramCallsWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def house(wire: TelegramCallsWire, tmp_path: Path) -> AsyncIterator[House]:
    async with housed(wire, tmp_path / "home") as house:
        yield house


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as http:
        yield http


async def test_telegram_is_told_where_to_call_and_with_which_secret(house: House, wire: TelegramCallsWire) -> None:
    assert wire.webhook.endswith("/networks/telegram")
    assert house.presence.detail == "@gate_bot, by its calls to /networks/telegram"
    assert not wire.asked("getUpdates")
    assert len(wire.asked_for["secret_token"]) == 64
    assert TOKEN.partition(":")[2] not in json.dumps(wire.asked_for)
    assert "message_reaction" in wire.asked_for["allowed_updates"]


@pytest.mark.row("T6", "T12", "T15", "T17")
async def test_only_who_shows_the_secret_is_heard(
    house: House, wire: TelegramCallsWire, http: aiohttp.ClientSession
) -> None:
    update = {"update_id": 5, "message": wire.message(ANN, ANN, text="what is it?")}
    for shown in ("", "wrong", wire.asked_for["secret_token"].upper(), TOKEN):
        assert await wire.post(http, update, **{SECRET: shown}) == 401
    async with http.post(wire.webhook, data=b"{}", headers={SECRET: wire.asked_for["secret_token"]}) as answer:
        assert answer.status == 415
    async with http.post(f"{wire.webhook}?x=1", json=update) as answer:
        assert answer.status == 400
    assert house.told("message:received") == []
    assert await wire.post(http, update) == 200
    await house.shows("It is 42.")


async def test_what_comes_twice_or_in_another_order_is_taken_once(
    house: House, wire: TelegramCallsWire, http: aiohttp.ClientSession
) -> None:
    late, early = (
        {"update_id": number, "message": wire.message(who, who, text="what is it?")}
        for number, who in ((9_500_002, ANN), (9_500_001, BEN))
    )
    for update in (late, late, early, late, early):
        assert await wire.post(http, update) == 200
    await house.shows("It is 42.", 2)
    assert await wire.post(http, late) == 200
    await wire.write("and you?")
    await house.shows("I heard you.")
    assert len(house.told("message:received")) == 3


@pytest.mark.parametrize("ill", [[], 7, {}, {"update_id": "1"}, {"update_id": None, "message": {}}])
async def test_what_cannot_be_read_is_passed_over_and_not_sent_again(
    house: House, wire: TelegramCallsWire, http: aiohttp.ClientSession, ill: object
) -> None:
    assert await wire.post(http, ill) == 200
    assert house.presence.unreadable == 1
    await wire.write("what is it?")
    await house.shows("It is 42.")


async def test_what_was_acknowledged_is_read_by_the_next_life_whatever_its_mode(
    wire: TelegramCallsWire, tmp_path: Path
) -> None:
    """It ended between the acknowledgement and the reading; and somebody has changed the mode since."""
    async with housed(wire, tmp_path / "home") as house:
        await wire.write("and you?")
        await house.shows("I heard you.")
        wire.files_flow.clear()
        await wire.upload(("a.pdf", b"a"), caption="what is it?")
        await until(lambda: not wire.updates, "the acknowledgement")
    wire.files_flow.set()
    polling = {"GATEWAY_PLATFORMS_TELEGRAM_MODE": "polling"}
    async with housed(wire, tmp_path / "home", environ=polling) as house:
        await house.shows("It is 42.")
        assert wire.webhook == "", "it was ours, and is taken back"
        await wire.write("and now?")
        await house.shows("I heard you.", 2)
        assert "by long polling" in house.presence.detail


async def test_an_address_that_telegram_does_not_want_is_said_and_it_is_polled(
    wire: TelegramCallsWire, tmp_path: Path
) -> None:
    refused = {"GATEWAY_WEB_URL": "http://refused.example.com"}
    async with housed(wire, tmp_path / "home", environ=refused) as house:
        assert "by long polling" in house.presence.detail
        (why,) = [one for one in house.presence.complaints if "calls" in one]
        assert "https url must be provided" in why
        assert "platform restart telegram" in why
        await wire.write("what is it?")
        await house.shows("It is 42.")


@pytest.mark.timeout(180)
async def test_calls_that_do_not_arrive_are_polled_for(wire: TelegramCallsWire, tmp_path: Path) -> None:
    """The address leads elsewhere: Telegram says so, and nothing is lost."""
    nowhere = {"GATEWAY_WEB_URL": "http://127.0.0.1:9"}
    async with housed(wire, tmp_path / "home", environ=nowhere) as house:
        await wire.write("what is it?")
        await until(lambda: "by long polling" in house.presence.detail, "the polls", 120)
        await house.shows("It is 42.")
        assert any("Cannot connect" in one for one in house.presence.complaints)


async def test_a_webhook_of_somebody_else_is_not_taken_back(wire: TelegramCallsWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", environ={"GATEWAY_PLATFORMS_TELEGRAM_MODE": "polling"}) as house:
        wire.webhook = "https://elsewhere.example/hook"
        wire.hang_up()
        await until(lambda: any("webhook" in one["reason"] for one in house.told("platform:down")), "the news")
        await until(lambda: house.part.restarts > 1, "another try")
        assert wire.webhook == "https://elsewhere.example/hook"
        assert not wire.asked("deleteWebhook")


async def test_what_is_held_is_somebodys(house: House) -> None:
    held = PendingUpdates(house.gateway.engine, "1")
    await held.hold({"update_id": 7, "message_reaction": {"user": {"id": 1001}}})
    (record,) = await house.gateway.engine.read(subjects.update_subject_of("telegram", "1"))
    kept = records.decode(record.data)
    assert is_of(kept, Person("telegram", ANN))
    assert not is_of(kept, Person("telegram", BEN))
    assert [one["update_id"] for one in await held.fetch(0, 0, 10)] == [record.seq]
    assert await held.fetch(record.seq + 1, 0, 10) == []


def test_a_certificate_that_has_chain_is_given_along(tmp_path: Path) -> None:
    alone, chained = tmp_path / "alone.pem", tmp_path / "chained.pem"
    alone.write_text(PEM)
    chained.write_text(PEM * 2)
    assert not has_chain(str(alone))
    assert has_chain(str(chained))


async def test_a_certificate_for_which_nobody_vouches_is_uploaded_and_calls_come_by_it(
    wire: TelegramCallsWire, tmp_path: Path
) -> None:
    made = write_certificate(tmp_path)
    written = f"web: {{tls: {{cert: '{made.cert}', key: '{made.key}'}}}}\n"
    encrypted = {"GATEWAY_WEB_URL": wire.environ["GATEWAY_WEB_URL"].replace("http:", "https:")}
    async with housed(wire, tmp_path / "home", settings=written, environ=encrypted) as house:
        assert wire.webhook.startswith("https://")
        assert wire.asked_for["certificate"][1] == await anyio.Path(made.cert).read_bytes()
        await wire.write("what is it?")
        await house.shows("It is 42.")
        assert set(wire.statuses) == {200}
        assert not wire.asked("getUpdates")
        assert "PRIVATE KEY" not in str(wire.calls)


@pytest.mark.process
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ("", "`web.url` does not say at which address"),
        ("web: {url: https://here.example}\nnode: {roles: [ingress]}\n", "`node.roles` has `ingress` without `web`"),
    ],
)
def test_without_an_address_the_mode_is_refused_with_the_line(tmp_path: Path, settings: str, why: str) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.environ |= {"TELEGRAM_BOT_TOKEN": TOKEN}
        gateway.configure(f"model: {{name: demo}}\nplatforms:\n  telegram: {{mode: webhook}}\n{settings}")
        checked = gateway.cli("config", "check")
    said = " ".join((checked.stdout + checked.stderr).split())
    assert checked.returncode != 0
    assert "config.yaml:3:" in said
    assert f"telegram cannot call the gateway: {why}" in said
