"""Three gateways at work on one journal: whichever is killed or held up, each message is answered once, in order."""

import re
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.errors import GatewayError
from gateway.testing import GatewayProcess
from gateway.testing.live_gateway import until
from gateway.testing.networks.wire import ANN, BEN
from tests.adapters.telegram_wire import TelegramWire
from tests.engine.nats_servers import run_servers

pytestmark = [pytest.mark.process, pytest.mark.timeout(240), pytest.mark.thorough]

NAMES = ("one", "two", "three")
NUMBER = re.compile(r"number (\d+);")
WORDS = [f"word{number} " for number in range(40)]
SLOW = {"user": "slow", "answers": [{"chunks": WORDS, "delay": "300ms"}]}  # longer than this machine may stand still
SCRIPT = (SLOW, *({"user": "", "text": "I heard you."},) * 200)
SETTINGS = "platforms: {telegram: {streaming: edit}}\n"


class Cluster:
    """A bot's network, and the gateways."""

    def __init__(self, folder: Path, wire: TelegramWire, url: str) -> None:
        self.wire = wire
        self.gateways = {name: GatewayProcess(folder / name / "home") for name in NAMES}
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.answering = set(NAMES)  # those that are not held up
        self.asked = 0
        for name, gateway in self.gateways.items():
            gateway.environ |= {**wire.environ, "TELEGRAM_ALLOWED_USERS": f"{ANN},{BEN}", "GATEWAY_ENGINE": url}
            gateway.script(*SCRIPT, settings=f"node: {{name: {name}}}\n{SETTINGS}")

    def begin(self, name: str) -> None:
        gateway = self.gateways[name]
        gateway.process = self.processes[name] = gateway.spawn("run")

    def kill(self, name: str) -> None:
        self.gateways[name].kill()

    async def find(self, wanted: str) -> str:
        """Which node `serves` the bot, or runs `turns`."""

        async def find() -> str:
            for name in self.answering:
                with suppress(GatewayError):
                    status = await anyio.to_thread.run_sync(self.gateways[name].call, "status")
                    if (status["platforms"]["telegram"]["up"], status["turns"]["running"] > 0)[wanted == "turns"]:
                        return name
            return ""

        return str(await until(find, f"who {wanted}"))

    async def call(self, verb: str, params: dict[str, Any] | None = None) -> Any:
        """Ask any gateway that answers."""

        async def find() -> list[Any]:
            for name in self.answering:
                with suppress(GatewayError, OSError):
                    return [await anyio.to_thread.run_sync(self.gateways[name].call, verb, params or {})]
            return []

        return (await until(find, f"an answer to {verb}"))[0]

    async def write(self, count: int) -> None:
        """Two people by turns, each in a chat of their own."""
        for _ in range(count):
            await self.wire.write(f"number {self.asked};", by=(ANN, BEN)[self.asked % 2])
            self.asked += 1

    async def is_answered(self) -> None:
        """Wait until every question is answered once, in order in each chat, and shown once.

        The display may be ahead of the journal as read just before, but not for good.
        """
        await until(self._is_audited, f"{self.asked} answers, not {self.wire.shown},", 60)

    async def _is_audited(self) -> bool:
        for first, person in enumerate((ANN, BEN)):
            asked, answers = await self._read(person)
            assert asked == sorted(set(asked)), "once, in order"
            shown = [one for one in self.wire.shown if one.chat == person and "I heard you." in one.text]
            if asked != list(range(first, self.asked, 2)) or len(shown) != answers:
                return False
        return True

    async def _read(self, person: str) -> tuple[list[int], int]:
        """Return this person's answered questions, and the number of answers."""
        asked, answers = list[int](), 0
        for one in (await self.call("sessions.list"))["sessions"]:
            if one["user_id"] == person:
                shown = await self.call("sessions.show", {"session": one["session_id"]})
                said = [(entry["role"], entry["content"]) for entry in shown["entries"]]
                asked = [int(number) for role, text in said if role == "user" for number in NUMBER.findall(text)]
                answers = len([text for role, text in said if role == "assistant" and text == "I heard you."])
        return asked, answers


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    wire = TelegramWire()
    with run_servers(tmp_path / "nats", 1) as (server,):
        async with wire.serving():
            cluster = Cluster(tmp_path, wire, server.url)
            try:
                for name in NAMES:
                    cluster.begin(name)
                await cluster.find("serves")
                yield cluster
            finally:
                for name in cluster.processes:
                    cluster.kill(name)


async def test_each_message_is_answered_once_whoever_is_lost(cluster: Cluster) -> None:
    await cluster.write(6)
    await cluster.is_answered()

    await cluster.wire.write("slow", by=ANN)
    await until(lambda: any("word3" in one.text for one in cluster.wire.shown), "the middle of a turn")
    lost = await cluster.find("turns")
    cluster.kill(lost)
    await cluster.write(6)
    await until(lambda: any("word39" in one.text for one in cluster.wire.shown), "its end on another node")
    await cluster.is_answered()
    assert len([one for one in cluster.wire.shown if "word" in one.text]) == 1, "the message that grew before"
    cluster.begin(lost)

    server = await cluster.find("serves")
    cluster.answering.remove(server)
    held = cluster.processes[server]
    held.send_signal(signal.SIGSTOP)
    await cluster.write(6)
    await cluster.is_answered()  # by another, so its lease is over
    held.send_signal(signal.SIGCONT)
    cluster.answering.add(server)
    await cluster.write(6)
    await cluster.is_answered()

    cluster.kill(await cluster.find("serves"))
    await cluster.write(6)
    await cluster.is_answered()
    assert cluster.wire.overlaps == 0, "the bot was read by one at a time"
