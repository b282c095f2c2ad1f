"""The menu of commands that Telegram shows after a slash: one for all people, and one for admins in their chats.

The chats of admins have a button for the page beside it, if the page has an address that Telegram opens: one of https.
"""

import logging

from telegram import Bot, BotCommand, BotCommandScopeChat, MenuButtonDefault, MenuButtonWebApp, WebAppInfo
from telegram.error import TelegramError

from gateway.adapters.shared.adapter import AdapterContext
from gateway.adapters.telegram.connection import ERRORS, PLATFORM
from gateway.adapters.telegram.page_button import find_page_address
from gateway.dispatcher.commands import Command, CommandTable
from gateway.messages.roles import Role

log = logging.getLogger(__name__)

MOST = 100  # commands in a menu
LONGEST = 256  # characters of a description


def build_commands(table: CommandTable, role: Role) -> list[BotCommand]:
    """Build the menu, without commands whose names Telegram does not take; typed, they still work."""
    shown = [one for one in table.values() if not one.hidden and one.is_for(role) and name_of(one)]
    return [BotCommand(name_of(one), one.summary[:LONGEST] or one.name) for one in shown][:MOST]


def name_of(command: Command) -> str:
    name = command.name.replace("-", "_").lower()
    return name if len(name) <= 32 and name.replace("_", "a").isalnum() and name.isascii() else ""


async def send_menu(bot: Bot, context: AdapterContext) -> None:
    """Send the menu to Telegram; a failure is only logged."""
    page = find_page_address(context)
    button = MenuButtonWebApp("Page", WebAppInfo(page)) if page else MenuButtonDefault()
    rules = context.parts.access.rules
    admins = {*rules.owners.get(PLATFORM, ()), *rules.admins.get(PLATFORM, ())}
    with ERRORS.logged(log.warning, "the menu of commands is not shown"):
        await bot.set_my_commands(build_commands(context.parts.commands, "user"))
    for admin in sorted(admins):
        try:
            scope = BotCommandScopeChat(int(admin))
            await bot.set_my_commands(build_commands(context.parts.commands, "admin"), scope=scope)
            await bot.set_chat_menu_button(int(admin), button)
        except (TelegramError, ValueError) as error:
            log.info("admin %s has no menu of their own before they write to the bot: %s", admin, error)
