"""The button beside the field in an admin's chat: the page admits the person that Telegram names, and no other."""

import hashlib
import hmac
import json
import re
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from anyio import to_thread
from playwright.async_api import async_playwright, expect

from gateway.records.records import ActivityRecord, read_all
from gateway.records.subjects import ACTIVITY_SUBJECT
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN
from tests.adapters.telegram_wire import TOKEN, TelegramWire
from tests.browser.screen import QUIET, find_chromium
from tests.spine import until
from tests.web.visits import Visit, send

HOST = "gate.example.org"
ADMINS = f"access: {{admins: {{telegram: ['{ANN}']}}}}\n"
HTTPS = f"web: {{url: 'https://{HOST}', trusted_proxies: [127.0.0.1]}}\n"
FORM = "application/x-www-form-urlencoded"


def sign(user: str, token: str = TOKEN, **changed: str) -> dict[str, str]:
    """Sign the data of the person who pressed it, as Telegram does."""
    fields = {"query_id": "AA", "user": json.dumps({"id": int(user)}), "auth_date": f"{time.time():.0f}", **changed}
    said = "\n".join(f"{name}={fields[name]}" for name in sorted(fields))
    key = hmac.digest(b"WebAppData", token.encode(), "sha256")
    return {**fields, "hash": hmac.new(key, said.encode(), hashlib.sha256).hexdigest()}


def fragment_of(fields: dict[str, str]) -> str:
    return urlencode({"tgWebAppData": urlencode(fields), "tgWebAppVersion": "9.0"})


async def press(house: House, fields: dict[str, str], host: str = HOST) -> Visit:
    assert house.gateway.web
    url, body = house.gateway.web.port.url, fragment_of(fields).encode()
    path = "/networks/telegram+page"
    return await to_thread.run_sync(partial(send, url, path, "POST", body, host, Content_Type=FORM))


async def have_a_say(_event: Any) -> None:
    """Nothing to say."""


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


async def test_admins_have_a_button_for_the_page_where_it_has_an_address(wire: TelegramWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "a", settings=ADMINS + HTTPS):
        await until(lambda: bool(wire.asked("setChatMenuButton")), "the button")
    async with housed(wire, tmp_path / "b", settings=ADMINS):
        await until(lambda: len(wire.asked("setChatMenuButton")) == 2, "no button")
    given, taken = wire.asked("setChatMenuButton")
    assert (given["chat_id"], taken["chat_id"]) == (ANN, ANN)
    assert given["menu_button"]["web_app"] == {"url": f"https://{HOST}/enter/telegram"}
    assert taken["menu_button"] == {"type": "default"}


async def test_who_pressed_it_is_let_in_once_and_as_themself(wire: TelegramWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=ADMINS + HTTPS) as house:
        pressed = sign(ANN)
        first, again = await press(house, pressed), await press(house, pressed)
        assert (first.status, again.status) == (200, 401)
        assert first.body.decode().startswith(f"https://{HOST}/open?code=")
        kept = [one async for _, one in read_all(house.gateway.engine, ACTIVITY_SUBJECT, ActivityRecord)]
        assert [(one.what, one.who) for one in kept] == [("/open", f"telegram:{ANN}")]


@pytest.mark.row("T12", "T15")
async def test_nobody_else_is(wire: TelegramWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=ADMINS + HTTPS) as house:
        for fields in (
            sign(ANN, token="1:other"),
            {**sign(BEN), "user": json.dumps({"id": int(ANN)})},
            {**sign(ANN), "hash": "\u00e4" * 64},
            {name: value for name, value in sign(ANN).items() if name != "hash"},
            sign(ANN, auth_date=f"{time.time() - 90:.0f}"),
            sign(ANN, auth_date=f"{time.time() + 90:.0f}"),
            sign(ANN, auth_date="soon"),
            {},
        ):
            refused = await press(house, fields)
            assert refused.status == 401, fields
            assert b"code=" not in refused.body
    async with housed(wire, tmp_path / "home", settings=ADMINS + HTTPS) as house:
        for user, why in ((BEN, b"owners, admins and operators"), ("4711", b"owners, admins and operators")):
            refused = await press(house, sign(user))
            assert (refused.status, why in refused.body) == (403, True)
    async with housed(wire, tmp_path / "home", settings=ADMINS) as house:
        assert (await press(house, sign(ANN), "")).status == 401


async def test_a_hook_that_has_a_say_in_it_is_not_passed_by(wire: TelegramWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=ADMINS + HTTPS) as house:
        house.gateway.registry.on("command:open", have_a_say)
        refused = await press(house, sign(ANN))
        assert (refused.status, b"write /open" in refused.body) == (403, True)


async def test_in_a_browser_the_button_ends_on_the_page(wire: TelegramWire, tmp_path: Path) -> None:
    program = find_chromium()
    if program is None:
        pytest.skip("the page is tried in a real browser: apt install chromium")
    async with (
        housed(wire, tmp_path / "home", settings=ADMINS + HTTPS) as house,
        async_playwright() as playwright,
    ):
        assert house.gateway.web
        url = f"{house.gateway.web.port.url}/enter/telegram"
        browser = await playwright.chromium.launch(executable_path=program, args=[*QUIET])
        page = await browser.new_page()
        await page.goto(f"{url}#{fragment_of(sign(ANN))}")
        await expect(page).to_have_title(re.compile("need.* · hermes-gateway"), timeout=60_000)
        other = await browser.new_page()
        await other.goto(f"{url}#{fragment_of(sign(ANN, token='1:other'))}")
        await expect(other.locator("#said")).to_contain_text("press the button again", timeout=60_000)
        assert "tgWebAppData" not in other.url
        await browser.close()
