"""Whatever a network sends, it goes on: real shapes of payloads, each with something in it that is not as it should be.

`MUTATIONS=2000` tries so many of each network; a change of what reads them is worth the minutes.
"""

import os
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import BEN
from tests.adapters.mutations import mutations
from tests.adapters.payloads import PAYLOADS
from tests.adapters.wires import WIRES
from tests.spine import until

COUNT = int(os.environ.get("MUTATIONS", "500"))
BATCH = max(COUNT // 20, 1)  # one person may ask thirty times a minute
QUIET = "access: {strangers: ignore}\n"


def send(wire: Any, kind: str, payload: Any) -> None:
    """As the network would."""
    match wire.network:
        case "telegram":
            wire.update(kind, payload)
        case "discord":
            wire.event(kind, payload)
        case "slack":
            wire.envelope(kind, payload)


async def answers(house: House, wire: Any, question: str) -> None:
    """Send Ben's message after all others, and wait until it was received."""
    await wire.write(question, by=BEN)
    await until(lambda: question in str(house.told("message:received")), question)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("network", PAYLOADS)
async def test_no_payload_stops_a_network(network: str, tmp_path: Path) -> None:
    wire: Any = WIRES[network](tmp_path)
    async with wire.serving(), housed(wire, tmp_path / "home", settings=QUIET) as house:
        for number, (kind, payload) in enumerate(mutations(PAYLOADS[network](), COUNT), 1):
            send(wire, kind, payload)
            if number % BATCH == 0:
                await answers(house, wire, f"what is number {number}?")
        await answers(house, wire, "what is it?")
        assert house.part.restarts == 0
        assert not house.told("platform:down")
        assert 0 < house.presence.unreadable <= COUNT / 2, "half of them reach what reads them"
        if network == "slack":
            await until(lambda: not wire.pending, "the last acknowledgement")


@pytest.mark.parametrize("network", PAYLOADS)
async def test_real_payloads_can_all_be_read(network: str, tmp_path: Path) -> None:
    wire: Any = WIRES[network](tmp_path)
    async with wire.serving(), housed(wire, tmp_path / "home", settings=QUIET) as house:
        for kind, payload in PAYLOADS[network]():
            send(wire, kind, payload)
        await answers(house, wire, "what is it?")
        assert house.presence.unreadable == 0, [await look_at(house)]


@pytest.mark.parametrize(
    ("network", "kind", "payload"),
    [
        ("telegram", "message", {"message_id": 1, "text": "no date, and no chat"}),
        ("discord", "MESSAGE_CREATE", {"id": "1", "content": "no author, and no channel"}),
        ("slack", "events_api", {"type": "event_callback", "event": {"type": ["message"], "text": "a list"}}),
    ],
)
async def test_what_cannot_be_read_is_counted_told_and_kept(
    network: str, kind: str, payload: dict[str, Any], tmp_path: Path
) -> None:
    wire: Any = WIRES[network](tmp_path)
    async with wire.serving(), housed(wire, tmp_path / "home", settings=QUIET) as house:
        secret = {**payload, "secret": next(iter(value for name, value in wire.environ.items() if "TOKEN" in name))}
        send(wire, kind, secret)
        await answers(house, wire, "what is it?")
        assert house.presence.unreadable == 1
        (told,) = await house.hears("platform:unreadable")
        (kept,) = await look_at(house)
        assert told["reason"] in kept
        assert "[secret]" in kept
        assert secret["secret"] not in kept


async def look_at(house: House) -> list[str]:
    """Read the file that only the owner may read."""
    folder = anyio.Path(house.gateway.home.unreadable)
    paths = [path async for path in folder.iterdir()] if await folder.is_dir() else []
    assert {stat.S_IMODE((await path.stat()).st_mode) for path in paths} <= {0o600}
    return [await path.read_text() for path in paths]
