"""`/open` in a chat: a link to the page for the gateway's operators, in a direct chat and for https alone."""

import re
from functools import partial
from pathlib import Path

import msgspec
from anyio import to_thread

from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, GROUP
from tests.adapters.telegram_wire import TelegramWire
from tests.web.logged_in import read_login, redeem
from tests.web.visits import Visit, visit

HOST = "gate.example.org"
PEOPLE = f"access: {{admins: {{telegram: ['{ANN}']}}}}\n"
BEHIND = f"web: {{url: 'https://{HOST}', trusted_proxies: [127.0.0.1]}}\n"


async def look(house: House, path: str, **headers: str) -> Visit:
    assert house.gateway.web
    return await to_thread.run_sync(partial(visit, house.gateway.web.port.url, path, host=HOST, **headers))


async def enter(house: House, path: str) -> Visit:
    assert house.gateway.web
    return await to_thread.run_sync(partial(redeem, house.gateway.web.port.url + path, host=HOST))


async def test_an_admin_is_let_in_as_themself_once_and_for_as_long_as_they_are_one(tmp_path: Path) -> None:
    wire = TelegramWire()
    async with wire.serving(), housed(wire, tmp_path / "home", settings=PEOPLE + BEHIND) as house:
        await wire.write("/open")
        (shown,) = await house.shows(f"https://{HOST}/open?code=")
        assert "your role (admin)" in shown.text
        code = re.findall(r"(/open\?code=\S+)", shown.text)[0]
        for how in ({}, {"Sec_Fetch_Mode": "navigate"}, {"Purpose": "preview"}):
            looked = await look(house, code, **how)
            assert (looked.status, b"login" in looked.body) == (200, False), "whoever looks at links uses none up"
        entered, again = [await enter(house, code) for _ in range(2)]
        assert again.status == 403
        token = read_login(entered)
        assert (await look(house, "/api/sessions.search?query=x", X_Token=token)).status == 200
        assert code not in str(
            house.gateway.groups.base.current.configuration.redactor.clean_all([f for _, f in house.events])
        )
        rules = house.gateway.access.rules
        house.gateway.access.rules = msgspec.structs.replace(rules, admins={})
        assert (await look(house, "/api/sessions.search?query=x", X_Token=token)).status == 403
        assert b'"may":[]' in (await look(house, "/api/me", X_Token=token)).body
        house.gateway.access.rules = msgspec.structs.replace(rules, admins={}, users={})
        assert (await look(house, "/api/me", X_Token=token)).status == 403


async def test_nobody_else_and_nowhere_else_is_a_link_given(tmp_path: Path) -> None:
    wire = TelegramWire()
    async with wire.serving():
        async with housed(wire, tmp_path / "home", settings=PEOPLE + BEHIND) as house:
            await wire.write("/open", chat=GROUP)
            await house.shows("for one person alone")
            await wire.write("/open", by=BEN)
            await house.shows("for owners, admins and operators")
        async with housed(wire, tmp_path / "home", settings=PEOPLE) as house:
            await wire.write("/open")
            await house.shows("no https address")
        assert not house.with_text("code=")
