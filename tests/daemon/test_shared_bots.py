"""Two gateways at work, one bot: its messages are read by one of them at a time, whatever becomes of that one."""

import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.cli.upgrade.running_gateway import RunningGateway
from gateway.errors import GatewayError
from gateway.testing import GatewayProcess
from gateway.testing.live_gateway import until
from gateway.testing.networks.wire import ANN
from tests.adapters.telegram_wire import TelegramWire
from tests.engine.nats_servers import NatsServer, run_servers
from tests.waits import Stopwatch

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

TAKE_OVER = 12.0
BUSY_SECONDS = 12.0  # that this machine may do something else, or nothing
PIECES = [f"piece {number} " + "x" * 3980 for number in range(9)]
SCRIPT = ({"user": "long", "text": "\n\n".join(PIECES)}, *({"user": "", "text": "I heard you."},) * 100)
SETTINGS = "platforms: {telegram: {streaming: off, max_parts: 20}}\n"


class SharedBot:
    """A bot's network, a NATS server, and gateways that may serve it."""

    def __init__(self, folder: Path, wire: TelegramWire, url: str) -> None:
        self.wire, self.gateways = wire, dict[str, GatewayProcess]()
        for name in ("one", "other"):
            gateway = self.gateways[name] = GatewayProcess(folder / name / "home")
            gateway.environ |= {**wire.environ, "TELEGRAM_ALLOWED_USERS": ANN, "GATEWAY_ENGINE": url}
            gateway.script(*SCRIPT, settings=f"node: {{name: {name}}}\n{SETTINGS}")

    def begin(self, name: str) -> subprocess.Popen[str]:
        gateway = self.gateways[name]
        gateway.process = gateway.spawn("run")
        return gateway.process

    async def asks(self, text: str, limit: float = 60.0) -> None:
        """Write a message, and wait for its answer."""
        before = len(self.wire.shown)
        await self.wire.write(text)
        await until(lambda: len(self.wire.shown) > before, f"an answer to {text!r}", limit)

    async def stands_by(self, name: str, holder: str) -> None:
        await until(partial(self.is_said, name, f"on standby: {holder} serves it"), f"{name} standing by", 60)

    async def is_said(self, name: str, what: str) -> bool:
        """Return True if a part has this detail in this gateway's status."""
        try:
            status = await anyio.to_thread.run_sync(self.gateways[name].call, "status")
        except GatewayError:
            return False
        return what in [part["detail"] for part in status["parts"]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with run_servers(tmp_path / "nats", 1) as servers:
        yield servers[0]


@pytest.fixture
async def bot(tmp_path: Path, server: NatsServer) -> AsyncIterator[SharedBot]:
    wire = TelegramWire()
    async with wire.serving():
        bot = SharedBot(tmp_path, wire, server.url)
        bot.begin("one")
        await bot.asks("hello")
        bot.begin("other")
        await bot.stands_by("other", "one")
        try:
            yield bot
        finally:
            for gateway in bot.gateways.values():
                gateway.kill()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP])
async def test_another_gateway_reads_on_and_never_two_at_a_time(bot: SharedBot, end: signal.Signals) -> None:
    process = bot.gateways["one"].process
    assert process
    connected = len(bot.wire.asked("getMe"))
    with Stopwatch() as watch:
        process.send_signal(end)
        await bot.wire.write("are you there?")
        await until(lambda: len(bot.wire.asked("getMe")) > connected, "another connection", 60)
    assert watch.seconds < TAKE_OVER + BUSY_SECONDS
    await until(lambda: len(bot.wire.shown) == 2, "an answer", 60)
    if end == signal.SIGSTOP:
        process.send_signal(signal.SIGCONT)
        await bot.stands_by("one", "other")
    await bot.asks("and now?")
    assert bot.wire.overlaps == 0
    assert [one.text for one in bot.wire.shown] == ["I heard you."] * 3


async def test_what_was_about_to_be_sent_is_not_sent_by_one_who_stood_still(bot: SharedBot) -> None:
    """Telegram takes five messages at once and then one a second: there the gateway waits, right before it sends."""
    process = bot.gateways["one"].process
    assert process
    await bot.wire.write("long")
    await until(lambda: len(bot.wire.shown) == 6, "five pieces", 60)
    await anyio.sleep(0.3)
    process.send_signal(signal.SIGSTOP)
    said = ["I heard you.", *PIECES]
    await until(lambda: [one.text for one in bot.wire.shown] == said, "all of it, by the other", 60)
    process.send_signal(signal.SIGCONT)
    await bot.stands_by("one", "other")
    await bot.asks("and now?")
    assert [one.text for one in bot.wire.shown] == [*said, "I heard you."]


async def test_what_is_to_be_done_with_a_bot_is_done_where_it_is_served(bot: SharedBot) -> None:
    _one, other = bot.gateways.values()
    assert [node["name"] for node in await ask(other, "status", "nodes")] == ["other", "one"]
    said = await anyio.to_thread.run_sync(other.cli, "status", "--parts")
    assert "it alone does" in said.stdout
    facts = await anyio.to_thread.run_sync(RunningGateway(other.home, other.environ).read_facts)
    assert facts.platforms == ("telegram",), "an upgrade of the other is not to wait for it"
    assert (await steer(other, "pause")).startswith("telegram is paused")
    await until(partial(bot.is_said, "one", "until you resume it"), "the pause")
    await bot.wire.write("are you there?")
    await anyio.sleep(1)
    assert len(bot.wire.shown) == 1
    assert await steer(other, "resume") == "telegram goes on."
    await until(lambda: len(bot.wire.shown) == 2, "an answer", 60)
    assert (await ask(other, "platform.probe", "seconds", {"name": "telegram"})) > 0
    with pytest.raises(GatewayError, match="paused, resumed and restarted"):
        await steer(other, "praise")
    assert bot.wire.overlaps == 0


async def ask(gateway: GatewayProcess, verb: str, field: str, params: Mapping[str, str] | None = None) -> Any:
    return (await anyio.to_thread.run_sync(gateway.call, verb, params))[field]


async def steer(gateway: GatewayProcess, verb: str) -> str:
    return str(await ask(gateway, "platform.steer", "did", {"verb": verb, "name": "telegram"}))
