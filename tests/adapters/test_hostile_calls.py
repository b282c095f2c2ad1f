"""The port's entrances for networks, used by callers that are no network, or by a network that sends nonsense."""

import json
import random
import re
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
from anyio import to_thread

from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN
from tests.adapters.bot_pairs import serving_pair
from tests.adapters.slack_calls_wire import FORM, SlackCallsWire, body_of, sign
from tests.adapters.telegram_calls_wire import TelegramCallsWire
from tests.spine import until

pytestmark = pytest.mark.thorough

JSON = "application/json"
WIRES: dict[str, Callable[[], Any]] = {"telegram": TelegramCallsWire, "slack": SlackCallsWire}
UNKNOWN = 401


@pytest.fixture(params=WIRES)
async def wire(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    wire = WIRES[request.param]()
    async with wire.serving():
        yield wire


@pytest.fixture
async def house(wire: Any, tmp_path: Path) -> AsyncIterator[House]:
    async with housed(wire, tmp_path / "home") as house:
        yield house


def find_headers(wire: Any, body: bytes = b"", stamp: float | None = None) -> dict[str, str]:
    """Return the network's credentials, for which it is believed."""
    if isinstance(wire, TelegramCallsWire):
        return {"X-Telegram-Bot-Api-Secret-Token": str(wire.asked_for["secret_token"])}
    return dict(sign(body, str(int(time.time() if stamp is None else stamp)), wire.secret))


def port_of(wire: Any) -> int:
    return int(wire.environ["GATEWAY_WEB_LISTEN"].rpartition(":")[2])


async def ask(wire: Any, path: str, lines: list[str], body: bytes = b"") -> tuple[int, bytes]:
    """Return the answer to a handwritten request; the line stays open meanwhile."""
    head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {JSON}", *lines, "", ""])
    async with await anyio.connect_tcp("127.0.0.1", port_of(wire)) as line:
        await line.send(head.encode() + body)
        answer = b""
        async for piece in line:
            answer += piece
    return int(answer.split()[1]), answer


def lines_of(headers: dict[str, str]) -> list[str]:
    return [f"{name}: {value}" for name, value in headers.items()]


@pytest.mark.row("T12")
async def test_no_body_is_waited_for_before_its_sender_is_known_and_none_is_taken_that_is_too_large(
    house: House, wire: Any
) -> None:
    path, length = f"/networks/{wire.network}", "Content-Length: 5000000000"
    assert (await ask(wire, path, [length]))[0] == UNKNOWN, "its body never comes"
    known = lines_of(find_headers(wire))
    assert (await ask(wire, path, [length, *known]))[0] == 413
    endless = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    assert (await ask(wire, path, ["Transfer-Encoding: chunked", *known], endless * 17))[0] == 413
    assert (await ask(wire, path, ["Transfer-Encoding: chunked", "Content-Length: 2", *known], b"{}"))[0] == 400
    assert (await ask(wire, path, ["Content-Length: 2", "Content-Length: 3", *known], b"{}"))[0] == 400
    assert house.told("message:received") == []


@pytest.mark.row("T6", "T12")
async def test_what_is_shown_twice_is_not_believed(house: House, wire: Any) -> None:
    body = b"{}"
    known = lines_of(find_headers(wire, body))
    length = f"Content-Length: {len(body)}"
    path = f"/networks/{wire.network}"
    for once_more in known:
        assert (await ask(wire, path, [length, *known, once_more], body))[0] == UNKNOWN
    assert (await ask(wire, path, [length, *known], body))[0] == 200
    assert house.part.restarts == 0


@pytest.mark.row("T14")
async def test_no_other_spelling_of_its_path_leads_to_a_bot_and_none_tells_who_is_there(
    house: House, wire: Any
) -> None:
    body = b"{}"
    known = [f"Content-Length: {len(body)}", *lines_of(find_headers(wire, body))]
    name = wire.network
    told = set()
    for path in (
        f"/networks/{name}/",
        f"/networks//{name}",
        f"/networks/./{name}",
        f"/networks/x/../{name}",
        f"/networks/{name.upper()}",
        f"/networks/%{ord(name[0]):x}{name[1:]}",
        f"/networks/{name}%00",
        f"/networks/{name}/work",
    ):
        status, answer = await ask(wire, path, known, body)
        told.add((status, answer.rpartition(b"\r\n\r\n")[2]))
    assert len(told) == 1
    assert {status for status, _ in told} <= {UNKNOWN}
    assert house.part.restarts == 0


@pytest.mark.row("T15")
@pytest.mark.parametrize(
    "kind", ["text/json", "application/json+x", "multipart/form-data", "", "application/json, text/plain"]
)
async def test_what_says_that_it_is_something_else_is_not_read(house: House, wire: Any, kind: str) -> None:
    async with aiohttp.ClientSession() as http:
        to, shown = f"http://127.0.0.1:{port_of(wire)}/networks/{wire.network}", find_headers(wire, b"{}")
        async with http.post(to, data=b"{}", headers={"Content-Type": kind, **shown}) as answer:
            assert answer.status == 415
        for coding in ("gzip", "br"):
            coded = {"Content-Type": JSON, "Content-Encoding": coding, **shown}
            async with http.post(to, data=b"{}", headers=coded, skip_auto_headers=["Content-Encoding"]) as answer:
                assert answer.status == 415
    assert house.told("message:received") == []


def hostile_of(wire: Any) -> list[bytes]:
    """Return JSON, or nearly JSON, that no message looks like."""
    deep = b'{"update_id": 1, "event": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    odd = [b'{"update_id": 1, "update_id": 2, "type": "a", "type": "event_callback"}', deep, b"\x00" * 100, b"NaN"]
    odd += [b'{"update_id": 1e400}', b'{"update_id": ' + b"9" * 5000 + b"}", b'{"update_id": 3, "message": NaN}']
    odd += [b'{"update_id": ' + str(number).encode() + b', "message": {}}' for number in (2**70, -(2**70), -1, 10**30)]
    odd.append(b'{"update_id": 77, "message": {"text": "\\ud800", "n": 123456789012345678901234567890}}')
    changes: list[dict[str, Any]] = [
        {"date": 10**18},
        {"date": -1},
        {"message_id": 2**70},
        {"from": {"id": 2**80, "is_bot": False, "first_name": "x"}},
        {"chat": {"id": "../../etc", "type": "private"}},
        {"text": 7},
        {"text": "\x00\u202e\ud800"},
        {"entities": [{"type": "bold", "offset": -5, "length": 2**40}]},
    ]
    for change in changes:
        message = {**telegram_message(), **change}
        odd.append(json.dumps({"update_id": random.randrange(10**9), "message": message}).encode())
    changes = [
        {"ts": "../x"},
        {"ts": 7},
        {"ts": "9" * 400},
        {"ts": "9" * 30},
        {"ts": "nan"},
        {"ts": "-inf"},
        {"user": {"id": []}},
        {"channel": "C\x00/.."},
        {"text": "\ud800"},
        {"blocks": {"a": 1}},
        {"files": [{"id": "../../x", "url_private_download": "file:///etc/passwd", "name": "../../x"}]},
    ]
    for change in changes:
        event = {"type": "message", "channel": "D00001001", "user": "U00001001", "text": "x", "ts": "1.2", **change}
        about = {"type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event_id": "E1", "event": event}
        odd.append(json.dumps(about).encode())
    return odd


def telegram_message() -> dict[str, Any]:
    who = {"id": int(ANN), "is_bot": False, "first_name": "Ann"}
    return {"message_id": 5, "date": int(time.time()), "chat": {"id": int(ANN), "type": "private"}, "from": who}


@pytest.mark.timeout(180)
async def test_whatever_is_believed_and_cannot_be_read_ends_nothing_and_comes_once(house: House, wire: Any) -> None:
    async with aiohttp.ClientSession() as http:
        to = f"http://127.0.0.1:{port_of(wire)}/networks/{wire.network}"
        for body in hostile_of(wire):
            headers = {"Content-Type": JSON, **find_headers(wire, body)}
            async with http.post(to, data=body, headers=headers) as answer:
                assert answer.status == 200, (answer.status, body[:100])
    await wire.write("what is it?")
    await house.shows("It is 42.")
    assert house.part.restarts == 0
    assert house.presence.up


async def test_many_who_guess_shut_out_nobody_who_knows(house: House, wire: Any) -> None:
    async with aiohttp.ClientSession() as http:
        to, body = f"http://127.0.0.1:{port_of(wire)}/networks/{wire.network}", b"{}"
        wrong = {
            "Content-Type": JSON,
            **{name: value[:-4] + "0000" for name, value in find_headers(wire, body).items()},
        }
        if wire.network == "slack":
            wrong["X-Slack-Request-Timestamp"] = str(int(time.time()))
        told = set()

        async def guess() -> None:
            for _ in range(15):
                async with http.post(to, data=body, headers=wrong) as answer:
                    told.add(answer.status)

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(guess)
            await wire.write("what is it?")
            await house.shows("It is 42.")
    assert 429 in told
    assert told <= {UNKNOWN, 429, 503}


@pytest.mark.row("T13")
async def test_slack_is_believed_for_five_minutes_and_a_call_once(tmp_path: Path) -> None:
    wire = SlackCallsWire()
    async with wire.serving(), housed(wire, tmp_path / "home") as house, aiohttp.ClientSession() as http:
        to, now = f"{wire.called}/networks/slack", int(time.time())
        kind, body = body_of(
            "slash_commands",
            {
                "command": "/whoami",
                "text": "",
                "user_id": wire.known_as(ANN),
                "team_id": "T1",
                "channel_id": wire.place(ANN),
                "trigger_id": "1.trigger",
                "response_url": f"{wire.url}/respond",
            },
        )
        assert kind == FORM
        for stamp, status in ((now - 305, 401), (now + 330, 401), (now - 270, 200), (now - 270, 200), (now - 270, 200)):
            async with http.post(
                to, data=body, headers={"Content-Type": kind, **find_headers(wire, body, stamp)}
            ) as told:
                assert told.status == status, stamp
        await house.shows("slack user")
        await wire.write("what is it?")
        await house.shows("It is 42.")
        assert len(wire.whispers) + len(house.with_text("slack user")) == 1, "an urgent command, three times the same"


@pytest.mark.row("T6", "T13")
@pytest.mark.parametrize("name", ["telegram-calls", "slack-calls"])
async def test_what_one_bot_is_believed_for_says_nothing_to_the_other(name: str, tmp_path: Path) -> None:
    async with serving_pair(name) as (first, second):
        wires: tuple[Any, Any] = (first, second)
        async with housed(wires[1], tmp_path / "home", beside=[wires[0]], account="work") as house:
            await until(lambda: all(one.presence.facts.up for one in house.gateway.platforms), "both bots")
            async with aiohttp.ClientSession() as http:
                at = f"http://127.0.0.1:{port_of(wires[0])}/networks/{wires[0].network}"
                for wire, mine, theirs in ((wires[0], at, f"{at}/work"), (wires[1], f"{at}/work", at)):
                    headers = {"Content-Type": JSON, **find_headers(wire, b"{}")}
                    async with http.post(theirs, data=b"{}", headers=headers) as answer:
                        assert answer.status == UNKNOWN
                    async with http.post(mine, data=b"{}", headers=headers) as answer:
                        assert answer.status == 200


@pytest.mark.process
@pytest.mark.timeout(300)
@pytest.mark.parametrize("network", WIRES)
async def test_whenever_it_is_killed_each_message_is_answered_once(network: str, tmp_path: Path) -> None:
    wire = WIRES[network]()
    lives, said = 4, 0
    async with wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.script(*({"text": "I heard."},) * 60)
            gateway.environ |= {**wire.environ, f"{network.upper()}_ALLOWED_USERS": wire.known_as(ANN)}
            for _ in range(lives):
                await to_thread.run_sync(gateway.start)
                before = len(wire.statuses)
                for _ in range(5):
                    said += 1
                    await wire.write(f"number {said}")
                await until(lambda before=before: len(wire.statuses) > before, "a call")  # type: ignore[misc]
                await anyio.sleep(random.uniform(0, 0.2))
                await to_thread.run_sync(gateway.kill)
            await to_thread.run_sync(gateway.start)
            session = f"agent:main:{network}:dm:{wire.place(ANN) if network == 'slack' else ANN}"
            found: list[str] = []

            async def is_all_there() -> bool:
                """Return True if waiting messages were taken together, each in one turn, each turn with one answer."""
                shown = await to_thread.run_sync(gateway.cli, "sessions", "show", session)
                found[:] = re.findall(r"number (\d+)", shown.stdout)
                turns = shown.stdout.count("I heard.")
                return len(found) >= said and len(wire.shown) >= turns

            await until(is_all_there, "all turns")
            assert sorted(map(int, found)) == list(range(1, said + 1))
            before = len(wire.shown)
            await wire.write("the last")
            await until(lambda: len(wire.shown) > before, "the last answer")
            shown = await to_thread.run_sync(gateway.cli, "sessions", "show", session)
            doubt = lives if network == "telegram" else 0  # it cannot be asked what it has shown
            assert 0 <= len(wire.shown) - shown.stdout.count("I heard.") <= doubt
