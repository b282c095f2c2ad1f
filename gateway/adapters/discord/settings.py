"""The settings of Discord, and facts about it that need no library."""

from typing import Annotated

from gateway.config.fields import HTTP_PATTERN, RELOADABLE, WEBSOCKET_PATTERN, Secret, describe
from gateway.config.platform_settings import PlatformSettings, PlatformSpec
from gateway.logs.redaction import TokenShape
from gateway.messages.parts import Poll

SNOWFLAKE = r"[0-9]{15,21}"  # 64 bits, the upper ones of which are a time; one more digit is accepted, as before


class DiscordSettings(PlatformSettings, frozen=True, kw_only=True):
    """Discord, by its gateway. The library keeps the addresses of one place for all bots."""

    SHARED = ("api_url", "gateway_url")
    NATIVE_PARTS = (Poll,)
    IS_STAMPED = True

    token: Annotated[Secret, describe("the bot's token, from the developer portal")] = Secret()
    allowed_roles: Annotated[
        tuple[str, ...], describe("ids of roles whose members may write to the bot"), RELOADABLE
    ] = ()
    allowed_channels: Annotated[
        tuple[str, ...], describe("ids of the channels in which the bot reads; by default all")
    ] = ()
    auto_thread: Annotated[bool, describe("answer a mention in a channel in a thread of its own")] = True
    api_url: Annotated[str, describe("another address of the HTTP API", pattern=HTTP_PATTERN)] = ""
    gateway_url: Annotated[str, describe("another address of the gateway", pattern=WEBSOCKET_PATTERN)] = ""


SPEC = PlatformSpec(
    settings=DiscordSettings,
    ids="numbers of 15 digits or more",
    user_id=SNOWFLAKE,
    chat_id=SNOWFLAKE,
    variables={
        "DISCORD_BOT_TOKEN": "platforms.discord.token",
        "DISCORD_ALLOWED_ROLES": "platforms.discord.allowed_roles",
        "DISCORD_ALLOWED_CHANNELS": "platforms.discord.allowed_channels",
        "DISCORD_FREE_RESPONSE_CHANNELS": "platforms.discord.free_response_channels",
        "DISCORD_AUTO_THREAD": "platforms.discord.auto_thread",
        "DISCORD_API_URL": "platforms.discord.api_url",
        "DISCORD_GATEWAY_URL": "platforms.discord.gateway_url",
    },
    token_shapes=(
        TokenShape(("/api/webhooks/",), r"(/api/webhooks/[0-9]+/)[A-Za-z0-9_-]+"),
        TokenShape((".",), r"(?<![A-Za-z0-9_-])[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}"),
    ),
    libraries=("discord", "aiohttp"),
)
