"""Slack in its other mode: it calls the port, is believed by its signature, and hears 200 for what we have."""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from gateway.daemon.platforms import steer_platform
from gateway.engine.interface import NewRecord
from gateway.errors import EngineError
from gateway.messages.message import Message, Receipt
from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN
from tests.adapters.slack_calls_wire import FORM, SlackCallsWire, body_of, sign
from tests.adapters.test_slack import FullAtFirst, connected
from tests.spine import until

JSON = "application/json"
CHALLENGE = json.dumps({"type": "url_verification", "token": "old", "challenge": "3eZbrw1aB"}).encode()


@pytest.fixture
async def wire() -> AsyncIterator[SlackCallsWire]:
    wire = SlackCallsWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def home(wire: SlackCallsWire, tmp_path: Path) -> AsyncIterator[House]:
    async with housed(wire, tmp_path / "home") as home:
        yield home


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as http:
        yield http


def make_event(wire: SlackCallsWire, text: str) -> bytes:
    """Make an event as Slack would send it."""
    event = wire.message(ANN, wire.place(ANN), text)
    about = {"type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event_id": wire.stamp(), "event": event}
    return json.dumps(about).encode()


async def test_slack_learns_that_the_address_is_ours(
    home: House, wire: SlackCallsWire, http: aiohttp.ClientSession
) -> None:
    status, said = await wire.post(http, JSON, CHALLENGE)
    assert (status, said["challenge"]) == (200, "3eZbrw1aB")
    assert home.presence.detail.endswith("by its calls to /networks/slack")
    assert not wire.asked("apps.connections.open"), "there is no line"


@pytest.mark.row("T12", "T13", "T17")
async def test_only_what_slack_signed_lately_is_heard(
    home: House, wire: SlackCallsWire, http: aiohttp.ClientSession
) -> None:
    body, now = make_event(wire, "what is it?"), int(time.time())
    signed = sign(body, str(now), wire.secret)
    to, kind = f"{wire.called}/networks/slack", {"Content-Type": JSON}
    assert (await wire.post(http, JSON, body, secret="another"))[0] == 401
    assert (await wire.post(http, JSON, body, stamp=now - 301))[0] == 401
    assert (await wire.post(http, JSON, body, stamp=now + 400))[0] == 401
    stamp, signature = signed
    for headers in (
        {},
        {stamp: signed[stamp]},
        {signature: signed[signature]},
        {**signed, signature: "v0="},
        {**signed, signature: signed[signature].upper()},
        {**signed, stamp: f"0{now}"},
    ):
        async with http.post(to, data=body, headers={**kind, **headers}) as answer:
            assert answer.status in (401, 429)
    for wanted in (401, 429):
        async with http.post(to, data=body + b" ", headers={**kind, **signed}) as answer:
            assert answer.status == wanted, "whoever guesses is slowed down"
    async with http.post(to, data=body, headers={**kind, **signed}) as answer:
        assert answer.status == 200, "and the right one still counts"
    await home.shows("It is 42.")
    async with http.post(to, data=body, headers={**kind, **signed}) as answer:
        assert answer.status == 200
    await wire.write("and you?")
    await home.shows("I heard you.")
    assert len(home.told("message:received")) == 2, "what is sent once more is known"


@pytest.mark.row("T13")
async def test_what_acts_at_once_acts_once_also_after_a_start(
    wire: SlackCallsWire, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    about = {"command": "/whoami", "text": "", "channel_id": wire.place(ANN), "user_id": wire.known_as(ANN)}
    kind, body = body_of("slash_commands", {**about, "trigger_id": wire.stamp()})
    headers = {"Content-Type": kind, **sign(body, str(int(time.time())), wire.secret)}
    for answers in (2, 1):
        async with housed(wire, tmp_path / "home") as house:
            for _ in range(2):
                async with http.post(f"{wire.called}/networks/slack", data=body, headers=headers) as answer:
                    assert answer.status == 200
            await wire.write("what is it?")
            await house.hears("message:sent", answers)
    assert [one.text.partition(",")[0] for one in wire.shown].count(f"slack user {wire.known_as(ANN)}") == 1


@pytest.mark.row("T12", "T14", "T15")
async def test_what_is_no_call_of_slacks_is_refused_by_its_head(
    home: House, wire: SlackCallsWire, http: aiohttp.ClientSession
) -> None:
    body = make_event(wire, "what is it?")
    signed = sign(body, str(int(time.time())), wire.secret)
    to = f"{wire.called}/networks/slack"
    async with http.get(to) as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    async with http.post(f"{to}?token=1", data=body, headers={"Content-Type": JSON, **signed}) as answer:
        assert answer.status == 400
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/jsonp"):
        async with http.post(to, data=body, headers={"Content-Type": kind, **signed}) as answer:
            assert answer.status == 415
    large = b" " * (1 << 20) + b"{}"
    assert (await wire.post(http, JSON, large))[0] == 413
    told = set()
    for name in ("slack", "telegram", "discord", "nobody", "slack/", ""):
        async with http.post(f"{wire.called}/networks/{name}", data=b"{}", headers={"Content-Type": JSON}) as answer:
            told.add((answer.status, await answer.text()))
    assert len(told) == 1, "whoever cannot sign learns nothing of who is here"
    assert home.told("message:received") == []


async def test_what_cannot_be_read_is_passed_over_and_not_sent_again(
    home: House, wire: SlackCallsWire, http: aiohttp.ClientSession
) -> None:
    ills = [b"", b"{", b"[]", b"null", b'{"type": "event_callback"}', b'{"type": 7, "event": []}']
    for ill in ills:
        for kind in (JSON, FORM):
            assert (await wire.post(http, kind, ill))[0] == 200, (kind, ill)
    assert (await wire.post(http, JSON, b"\xff\xfe"))[0] == 401
    for ill in (b"payload=", b"payload=%7B", b"command=%2Fstatus", b"ssl_check=1&token=x"):
        assert (await wire.post(http, FORM, ill))[0] == 200, ill
    await wire.write("what is it?")
    await home.shows("It is 42.")
    assert home.part.restarts == 0


async def test_what_the_journal_does_not_take_comes_again(home: House, wire: SlackCallsWire) -> None:
    full = FullAtFirst(home.gateway)
    async with connected(home, replace(home.gateway.groups.networks.adapter_context, receive=full, served_as="slack")):
        await wire.write("what is it?")
        await home.shows("It is 42.")
        await until(lambda: not wire.pending, "the acknowledgement")
    assert full.refused == 1
    assert max(wire.statuses) >= 500


class HangingAtFirst(FullAtFirst):
    """It does not come to its end, and then does."""

    async def __call__(self, message: Message, *extra: NewRecord, **how: Any) -> Receipt:
        try:
            return await super().__call__(message, *extra, **how)
        except EngineError:
            await anyio.sleep_forever()
            raise


async def test_a_call_that_was_cut_off_is_taken_when_it_comes_once_more(home: House, wire: SlackCallsWire) -> None:
    body, hanging = make_event(wire, "what is it?"), HangingAtFirst(home.gateway)
    signed = sign(body, str(int(time.time())), wire.secret)
    headers = {"content-type": JSON, **{name.lower(): value for name, value in signed.items()}}
    context = replace(home.gateway.groups.networks.adapter_context, receive=hanging, served_as="slack")
    async with connected(home, context), anyio.create_task_group() as tasks:
        route = context.routes.find("/networks/slack")
        assert route is not None
        tasks.start_soon(route.take, headers, body)
        await until(lambda: bool(hanging.refused), "the call")
        tasks.cancel_scope.cancel()
    async with connected(home, context):
        route = context.routes.find("/networks/slack")
        assert route is not None
        assert (await route.take(headers, body)).status == 200
        await home.shows("It is 42.")


async def test_slack_is_told_nothing_while_it_is_paused_and_calls_again(home: House, wire: SlackCallsWire) -> None:
    steer_platform(home.gateway.platforms, "pause", "slack")
    await wire.write("what is it?")
    await until(lambda: 401 in wire.statuses, "a refusal")
    assert wire.pending
    steer_platform(home.gateway.platforms, "resume", "slack")
    await home.shows("It is 42.")


async def test_what_a_call_answers_to_its_caller_is_for_them_alone(home: House, wire: SlackCallsWire) -> None:
    await wire.write("/whoami", by="9999")
    await until(lambda: bool(wire.whispers), "the answer to a stranger's command")
    assert wire.shown == []
    kind, body = body_of("slash_commands", {"command": "/whoami", "text": "x=1&y"})
    assert (kind, body) == (FORM, b"command=%2Fwhoami&text=x%3D1%26y")


@pytest.mark.process
def test_without_an_address_the_mode_is_refused_with_the_line(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.environ |= {"SLACK_BOT_TOKEN": "xoxb-1111-2222-abcdefabcdef", "SLACK_SIGNING_SECRET": "0" * 32}
        gateway.configure("model: {name: demo}\nplatforms:\n  slack: {mode: http}\n")
        checked = gateway.cli("config", "check")
        assert checked.returncode != 0
        said = " ".join((checked.stdout + checked.stderr).split())
        assert "config.yaml:3:" in said
        assert "slack cannot call the gateway: `web.url` does not say at which address" in said
        gateway.configure(
            "model: {name: demo}\nplatforms: {slack: {mode: http}}\nweb: {url: https://bot.example.com}\n"
        )
        assert gateway.cli("config", "check").returncode == 0
        about = json.loads(gateway.cli("setup", "slack", "--manifest").stdout)
        done = gateway.cli("setup", "slack", "--allow", "U012ABCDEF", "--no-check")
        assert "SLACK_SIGNING_SECRET" in done.stdout, done.stderr
        assert "SLACK_APP_TOKEN" not in done.stdout
    to = "https://bot.example.com/networks/slack"
    settings = about["settings"]
    assert settings["socket_mode_enabled"] is False
    assert settings["event_subscriptions"]["request_url"] == settings["interactivity"]["request_url"] == to
    assert {one["url"] for one in about["features"]["slash_commands"]} == {to}
