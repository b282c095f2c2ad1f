"""The bot's reactions on Discord, under messages that need not be fetched first."""

import discord

from gateway.adapters.discord.channels import int_of
from gateway.adapters.discord.connection import ERRORS
from gateway.adapters.shared.status_reactions import NetworkReactions, RefusalScope
from gateway.errors import AdapterError
from gateway.messages.message import Address

PAUSE = 0.6
NO_RIGHT = ("code 50001)", "code 50013)")


def describe_reactions(client: discord.Client) -> NetworkReactions:
    async def put(address: Address, message_id: str, emoji: str) -> None:
        with ERRORS.translated():
            await find_message(client, address, message_id).add_reaction(emoji)

    async def take(address: Address, message_id: str, emoji: str) -> None:
        with ERRORS.translated():
            assert client.user
            await find_message(client, address, message_id).remove_reaction(emoji, client.user)

    return NetworkReactions(
        {"seen": "👀", "working": "🤔", "done": "✅", "failed": "❌"},
        put=put,
        take=take,
        pause=PAUSE,
        scope=scope_of,
        time_of=time_of,
    )


def find_message(client: discord.Client, address: Address, message_id: str) -> discord.PartialMessage:
    """Return the message without a request; the message of a thread's origin is in the channel above the thread."""
    where = address.thread_id if address.thread_id != message_id else ""
    return client.get_partial_messageable(int_of(where or address.chat_id)).get_partial_message(int_of(message_id))


def scope_of(error: AdapterError) -> RefusalScope:
    return "chat" if any(str(error).endswith(one) for one in NO_RIGHT) else ""


def time_of(message_id: str) -> float:
    return discord.utils.snowflake_time(int_of(message_id)).timestamp()
