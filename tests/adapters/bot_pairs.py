"""Two bots of one network, served at once: each with a wire of its own, which has nothing of the other's."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

from gateway.testing.networks.wire import Wire
from tests.adapters.discord_facts import BOT as DISCORD_BOT
from tests.adapters.discord_wire import DiscordWire
from tests.adapters.slack_calls_wire import SlackCallsWire
from tests.adapters.slack_wire import SlackWire
from tests.adapters.telegram_calls_wire import TelegramCallsWire
from tests.adapters.telegram_wire import BOT as TELEGRAM_BOT
from tests.adapters.telegram_wire import TelegramWire

WORK_TOKEN = "4343:BBHfiqksKZ8WmR2zSjiQ7_v0pnWEvXyZabc"
TELEGRAM_WORK = {**TELEGRAM_BOT, "id": 4343, "username": "work_bot"}
DISCORD_TOKEN = "MTA0MzQz.GabcDE.discord-token-of-the-other-bot-0123456"
SLACK_TOKENS = ("xoxb-1111-3333-loopbackloopback", "xapp-1-A2-3333-loopbackloopback")
SLACK_SECRET = "1f742231b10e8888abcd99yyyzzz85a6"

Pair: TypeAlias = tuple[Any, Any]


class WorkWire(TelegramWire):
    """A second bot of Telegram's."""

    def __init__(self) -> None:
        super().__init__(token=WORK_TOKEN, bot=TELEGRAM_WORK)

    @property
    def environ(self) -> dict[str, str]:
        return {**super().environ, "TELEGRAM_BOT_TOKEN": WORK_TOKEN}


class WorkCallsWire(TelegramCallsWire):
    """The same, which calls the port."""

    def __init__(self) -> None:
        super().__init__(token=WORK_TOKEN, bot=TELEGRAM_WORK)

    @property
    def environ(self) -> dict[str, str]:
        return {**super().environ, "TELEGRAM_BOT_TOKEN": WORK_TOKEN}


async def serve_telegram(stack: AsyncExitStack) -> Pair:
    first, second = TelegramWire(), WorkWire()
    for one in (first, second):
        await stack.enter_async_context(one.serving())
    return first, second


async def serve_telegram_calls(stack: AsyncExitStack) -> Pair:
    first, second = TelegramCallsWire(), WorkCallsWire()
    for one in (first, second):
        await stack.enter_async_context(one.serving())
    second._port = first._port
    return first, second


async def serve_discord(stack: AsyncExitStack) -> Pair:
    first = DiscordWire()
    bot = {**DISCORD_BOT, "id": "4343000", "username": "work"}
    second = DiscordWire(token=DISCORD_TOKEN, given_token=DISCORD_TOKEN, bot=bot)
    await stack.enter_async_context(first.serving())
    await stack.enter_async_context(second.serving_beside(first))
    return first, second


async def serve_slack(stack: AsyncExitStack) -> Pair:
    first = SlackWire()
    second = SlackWire(tokens=SLACK_TOKENS, given_tokens=SLACK_TOKENS, bot="U0000BOT1", bot_id="B2")
    for one in (first, second):
        await stack.enter_async_context(one.serving())
    return first, second


async def serve_slack_calls(stack: AsyncExitStack) -> Pair:
    first = SlackCallsWire()
    second = SlackCallsWire(tokens=SLACK_TOKENS, given_tokens=SLACK_TOKENS, bot="U0000BOT1", bot_id="B2")
    second.secret, second.path = SLACK_SECRET, "/networks/slack/work"
    for one in (first, second):
        await stack.enter_async_context(one.serving())
    second._port = first._port
    return first, second


PAIRS: dict[str, Callable[[AsyncExitStack], Awaitable[Pair]]] = {
    "telegram": serve_telegram,
    "telegram-calls": serve_telegram_calls,
    "discord": serve_discord,
    "slack": serve_slack,
    "slack-calls": serve_slack_calls,
}


@asynccontextmanager
async def serving_pair(name: str) -> AsyncIterator[tuple[Wire, Wire]]:
    """The network's own bot, and the one that is called `work`."""
    async with AsyncExitStack() as stack:
        yield await PAIRS[name](stack)
