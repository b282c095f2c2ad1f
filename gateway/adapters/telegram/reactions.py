"""The bot's reactions on Telegram: one under a message, with emoji that every chat allows by default."""

from functools import partial

from telegram import Bot

from gateway.adapters.shared.status_reactions import NetworkReactions, RefusalScope
from gateway.adapters.telegram.connection import UNKNOWN_METHOD, call_new_method
from gateway.adapters.telegram.transport import chat_of
from gateway.errors import AdapterError
from gateway.messages.message import Address

PAUSE = 1.0
NO_RIGHT = ("not enough rights", "reaction_invalid", "reactions_too_many", "chat_admin_required", "lets us not write")


def describe_reactions(bot: Bot) -> NetworkReactions:
    return NetworkReactions(
        {"seen": "👀", "working": "🤔", "done": "👍", "failed": "👎"},
        put=partial(set_reaction, bot),
        take=lambda address, message_id, _emoji: set_reaction(bot, address, message_id, ""),
        pause=PAUSE,
        scope=scope_of,
        is_replacing=True,
    )


async def set_reaction(bot: Bot, address: Address, message_id: str, emoji: str) -> None:
    """Set the reaction; raises AdapterError."""
    if not message_id.isdecimal():  # no id of Telegram's
        return
    with call_new_method("reactions"):
        await bot.set_message_reaction(chat_of(address), int(message_id), [emoji] if emoji else [])


def scope_of(error: AdapterError) -> RefusalScope:
    """Return the scope of a refusal: a missing right, an emoji that the group forbids, or a server that is too old."""
    if UNKNOWN_METHOD in str(error):
        return "network"
    return "chat" if any(one in str(error).lower() for one in NO_RIGHT) else ""
