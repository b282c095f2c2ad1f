"""One Telegram bot at work: it connects, receives, sends, types and offers commands, until cancelled.

A poll that Telegram answers, even with no update, proves the connection and the token; so a poll ends at least every
quarter of a minute, and a connection that is silent for longer is replaced.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import anyio
import msgspec
from telegram import Bot

from gateway.adapters.shared.adapter import AdapterContext, Presence
from gateway.adapters.shared.adapter_host import begin_transport
from gateway.adapters.shared.status_reactions import StatusReactions
from gateway.adapters.telegram import menu
from gateway.adapters.telegram.connection import ERRORS, make_bot
from gateway.adapters.telegram.page_button import PageButtonRoute, page_route_of
from gateway.adapters.telegram.reactions import describe_reactions
from gateway.adapters.telegram.settings import TelegramSettings
from gateway.adapters.telegram.transport import TelegramTransport, chat_of, thread_of
from gateway.adapters.telegram.webhook import TelegramWebhook
from gateway.chats.journal import ChatJournal
from gateway.errors import AdapterError, Conflict
from gateway.messages.message import Address

log = logging.getLogger(__name__)

TYPING_PAUSE = 4.5  # seconds; Telegram hides the sign after five
POLLED_INSTEAD = (
    "Telegram's calls do not arrive, so the gateway polls instead: {why}; "
    "after the repair: hermes-gateway platform restart {name}"
)


class TelegramAdapter(msgspec.Struct, eq=False):
    """The adapter of one bot; fills `Adapter`."""

    _settings: TelegramSettings
    _context: AdapterContext

    async def serve(self, presence: Presence) -> None:
        """Serve the bot until cancelled.

        Raises:
            AdapterError: Telegram cannot be used now; the message has the reason and the remedy.
        """
        bot = make_bot(self._settings, presence.check_right)
        button = PageButtonRoute(self._context, self._settings.token.reveal())
        try:
            with ERRORS.translated(), self._context.routes.serving(page_route_of(self._context.served_as), button):
                await bot.initialize()
                await self._work(bot, presence)
        except Conflict:
            raise AdapterError("another gateway with the same journal reads this bot's messages") from None
        finally:
            with anyio.CancelScope(shield=True):
                await bot.shutdown()

    async def _work(self, bot: Bot, presence: Presence) -> None:
        carrier = TelegramTransport(bot, self._settings, presence)
        parts = self._context.parts
        reactions = StatusReactions(describe_reactions(bot), parts.chats.find_display, presence)
        context = replace(self._context, receive=reactions.noting(self._context.receive))
        webhook = TelegramWebhook(bot, self._settings, context, presence)
        is_called = self._settings.mode == "webhook"
        receiver = webhook.make_receiver() if is_called else await webhook.begin_polls()
        async with anyio.create_task_group() as tasks:
            await tasks.start(reactions.run, parts.engine)
            show, show_menu = partial(show_typing, bot), partial(menu.send_menu, bot, self._context)
            await begin_transport(tasks, context, carrier, show, TYPING_PAUSE, show_menu=show_menu)
            polled = list[str]()

            def complain() -> None:
                presence.complain(*self._complaints(bot), *polled)

            complain()
            tasks.start_soon(report_changed_chats, parts.chats.kept, complain)
            presence.probe = partial(probe, bot)
            presence.way_in = f"https://t.me/{bot.username}?start={{code}}"
            if is_called:
                why_not = await webhook.serve(receiver)
                polled.append(POLLED_INSTEAD.format(why=why_not, name=presence.name))
                complain()
                receiver = await webhook.begin_polls()
            presence.up(f"@{bot.username}, by long polling")
            await receiver.run()

    def _complaints(self, bot: Bot) -> list[str]:
        wants_all = self._context.parts.chats.wants_all(self._context.served_as)
        if wants_all and not bot.bot.can_read_all_group_messages:
            what = f"@{bot.username} does not see all that is said in groups"
            return [f"{what}: turn its privacy mode off (@BotFather, /setprivacy), then add it to the group again"]
        return []


async def report_changed_chats(chats: ChatJournal, complain: Callable[[], None]) -> None:
    """Update the complaint about privacy mode whenever the rules of chats change."""
    while True:
        await chats.news.wait()
        complain()


async def show_typing(bot: Bot, address: Address) -> None:
    with ERRORS.logged(log.debug, "no typing sign in %s", address.chat_id):
        await bot.send_chat_action(chat_of(address), "typing", message_thread_id=thread_of(address))


async def probe(bot: Bot) -> None:
    with ERRORS.translated():
        await bot.get_me()


ADAPTER = TelegramAdapter
