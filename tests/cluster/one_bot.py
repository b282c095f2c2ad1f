"""Two gateways and one bot: the one that reads it is killed, hangs or is cut off from the servers."""

import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from gateway.testing.live_gateway import until
from tests.adapters.line import Line, line_to
from tests.adapters.telegram_wire import TelegramWire
from tests.daemon.test_shared_bots import TAKE_OVER, SharedBot
from tests.engine.nats_servers import run_servers
from tests.proof_table import Row, Trial, make_row

NAMES = ("one", "other")
HARMS = ("killed", "paused", "cut off")
LONGEST = 120.0
BUSY_SECONDS = 60  # more in a short run, whose parts run beside each other


@dataclass
class LostHolders:
    """`gaps`: the seconds until the other gateway had the bot, after each harm to the one that had it."""

    gaps: dict[str, list[float]] = field(default_factory=lambda: {harm: [] for harm in HARMS})
    overlaps: int = 0
    said: int = 0
    shown: int = 0


async def try_holders(trial: Trial, folder: Path) -> LostHolders:
    found, wire = LostHolders(), TelegramWire()
    with run_servers(folder / "nats", 1) as (server,):
        async with wire.serving(), serving(folder, wire, server.url) as (bot, lines):
            holder = 0
            for number in range(trial.amount(20, len(HARMS))):
                harm = HARMS[number % len(HARMS)]
                trial.tell(f"one bot: {number + 1}, {harm}")
                found.gaps[harm].append(await harm_holder(bot, lines, holder, harm))
                holder = 1 - holder
            await bot.asks("and now?", LONGEST)
    found.overlaps, found.shown = wire.overlaps, len(wire.shown)
    found.said = sum(map(len, found.gaps.values())) + 2
    return found


@asynccontextmanager
async def serving(folder: Path, wire: TelegramWire, url: str) -> AsyncIterator[tuple[SharedBot, list[Line]]]:
    """Each gateway has a line of its own to the server; the first one reads."""
    async with line_to(url) as (one_url, one), line_to(url) as (other_url, other):
        bot = SharedBot(folder, wire, url)
        for name, where in zip(NAMES, (one_url, other_url), strict=True):
            bot.gateways[name].environ["GATEWAY_ENGINE"] = where.replace("http:", "nats:")
        try:
            bot.begin("one")
            await bot.asks("hello", LONGEST)
            bot.begin("other")
            await bot.stands_by("other", "one")
            yield bot, [one, other]
        finally:
            one.flows.set()
            other.flows.set()
            for gateway in bot.gateways.values():
                gateway.kill()


async def harm_holder(bot: SharedBot, lines: list[Line], holder: int, harm: str) -> float:
    """Harm the reader; the other answers a message then, and the first stands by when all is well."""
    name, other = NAMES[holder], NAMES[1 - holder]
    process = bot.gateways[name].process
    assert process
    connected, shown, begun = len(bot.wire.asked("getMe")), len(bot.wire.shown), time.monotonic()
    match harm:
        case "killed":
            bot.gateways[name].kill()
        case "paused":
            process.send_signal(signal.SIGSTOP)
        case "cut off":
            lines[holder].flows.clear()
    await until(lambda: len(bot.wire.asked("getMe")) > connected, f"another connection, of {other}", LONGEST)
    gap = time.monotonic() - begun
    await bot.wire.write(f"are you there, {other}?")
    await until(lambda: len(bot.wire.shown) > shown, f"an answer of {other}", LONGEST)
    match harm:
        case "killed":
            bot.begin(name)
        case "paused":
            process.send_signal(signal.SIGCONT)
        case "cut off":
            lines[holder].flows.set()
    await bot.stands_by(name, other)
    return gap


def prove(trial: Trial) -> Iterator[Row]:
    folder = trial.folder / "one-bot"
    folder.mkdir()
    found = anyio.run(try_holders, trial, folder)
    yield make_row("two gateways, one bot: holders lost", "", str(found.said - 2))
    most = TAKE_OVER + trial.amount(0, BUSY_SECONDS)
    for harm, gaps in found.gaps.items():
        came = f"{max(gaps):.1f} s ({len(gaps)} times)"
        yield make_row(f"  {harm}: the other has it within", f"<= {most:.0f} s", came, max(gaps) <= most)
    yield make_row("  two polls at once", "0", str(found.overlaps), found.overlaps == 0)
    is_even = found.shown == found.said
    yield make_row("  messages, and answers to them", "as many", f"{found.said}, {found.shown}", is_even)
