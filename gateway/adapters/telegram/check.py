"""The check of a token: whose bot it is, and what the bot may see."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from telegram import Bot, LinkPreviewOptions

from gateway.adapters.shared.folder import PlatformReport
from gateway.adapters.telegram.connection import ERRORS, make_bot
from gateway.adapters.telegram.settings import TelegramSettings
from gateway.errors import AdapterError

GROUPS = "it may not be added to groups: @BotFather, /setjoingroups, if you want it there"
PRIVACY = (
    "privacy mode hides group messages that do not mention the bot, which is right while `require_mention` is on "
    "and no chat is quiet; else: @BotFather, /setprivacy, Disable, then add it to the group again"
)


async def check(settings: TelegramSettings) -> PlatformReport:
    """Return the name and link of the bot, and the steps that are missing.

    Raises:
        AdapterError: the token is not valid, a webhook or another program reads with it, or Telegram cannot be reached.
    """
    async with open_bot(settings) as bot:
        me = bot.bot
        webhook = await bot.get_webhook_info()
        if webhook.url:
            raise AdapterError(
                f"a webhook gets the messages of @{me.username}: take it back (the Bot API's deleteWebhook), "
                "or make a bot of its own for this gateway with @BotFather"
            )
    todo = [*([] if me.can_join_groups else [GROUPS]), *([] if me.can_read_all_group_messages else [PRIVACY])]
    return PlatformReport(f"@{me.username} ({me.first_name}, id {me.id})", f"https://t.me/{me.username}", tuple(todo))


async def say(settings: TelegramSettings, chat: str, text: str) -> None:
    """Send one text to a chat.

    Raises:
        AdapterError: Telegram refused it.
    """
    async with open_bot(settings) as bot:
        await bot.send_message(chat, text, link_preview_options=LinkPreviewOptions(is_disabled=True))


@asynccontextmanager
async def open_bot(settings: TelegramSettings) -> AsyncIterator[Bot]:
    bot = make_bot(settings)
    with ERRORS.translated():
        async with bot:
            yield bot
