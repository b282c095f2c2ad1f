"""The connection to Discord: its addresses, the events that we request, and Discord's errors in our words."""

from typing import Final

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from gateway.adapters.discord.settings import DiscordSettings
from gateway.adapters.shared.network_errors import NetworkErrors, make_rate_limit_error, read_seconds
from gateway.errors import AdapterError

PLATFORM: Final = "discord"
API: Final = "https://discord.com/api/v10"
GATEWAY: Final = "wss://gateway.discord.gg/"
PORTAL: Final = "https://discord.com/developers/applications"
UNKNOWN_TOKEN: Final = (
    "Discord does not know the bot's token (reset, or mistyped): get the present one at "
    f"{PORTAL}, Bot, Reset Token, and put it into DISCORD_BOT_TOKEN"
)
REFUSALS: Final = {
    10003: "the channel was not found, or the bot cannot see it",
    10008: "the message is gone",
    50001: "the bot cannot see that channel: give its role View Channel there",
    50007: "this person does not receive messages from the bot (blocked, or no common server)",
    50013: (
        "the bot lacks a right there: give its role Send Messages, Send Messages in Threads, Attach Files, "
        "Add Reactions and Read Message History"
    ),
}
CLOSINGS: Final = {
    4004: UNKNOWN_TOKEN,
    4010: "Discord requires sharding for this bot, which the gateway does not support",
    4011: "the bot is on too many servers for one connection; the gateway does not support sharding",
}


def configure_library(settings: DiscordSettings) -> None:
    """Set the library's two addresses and its warnings, which it keeps in classes; nothing else sets them."""
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # the bot does not speak in voice channels
    Route.BASE = settings.api_url.rstrip("/") or API
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(settings.gateway_url or GATEWAY)


def make_intents() -> discord.Intents:
    """Return the events that we request; the content of messages is a privilege that the portal must grant."""
    return discord.Intents(
        guilds=True,
        guild_messages=True,
        dm_messages=True,
        guild_reactions=True,
        dm_reactions=True,
        message_content=True,
    )


def as_adapter_error(error: Exception) -> AdapterError:
    """Describe an error for people and for the outbox: permanent, or worth another try, and when."""
    match error:
        case AdapterError():
            return error
        case discord.LoginFailure():
            return AdapterError(UNKNOWN_TOKEN)
        case discord.PrivilegedIntentsRequired():
            return AdapterError(
                f"Discord refuses to show this bot what people write: at {PORTAL}, Bot, Privileged Gateway Intents, "
                "switch on Message Content Intent"
            )
        case discord.ConnectionClosed():
            return AdapterError(
                CLOSINGS.get(error.code, f"Discord's gateway closed the connection permanently ({error.code})")
            )
        case discord.RateLimited():
            return make_rate_limit_error("Discord", error.retry_after)
        case discord.DiscordServerError():
            return AdapterError(f"Discord is ill ({error.status})")
        case discord.HTTPException():
            return refusal_from(error)
        case TimeoutError():
            return AdapterError("Discord did not answer in time")
        case aiohttp.ClientError() | OSError():
            return AdapterError(f"Discord cannot be reached: {error}")
    return AdapterError(f"Discord: {error}")


def refusal_from(error: discord.HTTPException) -> AdapterError:
    """Describe an answer by which Discord refused a request."""
    if error.status == 401:
        return AdapterError(UNKNOWN_TOKEN)
    if error.status == 429:
        return make_rate_limit_error("Discord", read_seconds(error.response.headers, 60.0))
    known = REFUSALS.get(error.code)
    return AdapterError(f"Discord refused: {known or error.text} ({error.status}, code {error.code})", permanent=True)


ERRORS: Final = NetworkErrors((discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError), as_adapter_error)
