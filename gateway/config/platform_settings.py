"""The settings of the chat networks."""

from typing import Annotated, Literal

from msgspec import Struct

from gateway.config.fields import HTTP_PATTERN, WEBSOCKET_PATTERN, Secret, describe


class PlatformSettings(Struct, frozen=True, kw_only=True):
    """What all networks have."""

    enabled: Annotated[bool | None, describe("whether it is used; by default where its token is there")] = None
    home_channel: Annotated[
        str, describe("the id of the chat that gets what nobody asked for: reports, alerts, BOOT.md")
    ] = ""
    home_channel_name: Annotated[str, describe("what that chat is called, for people")] = ""
    require_mention: Annotated[
        bool, describe("in groups, answer only when spoken to: a mention, a reply, a command")
    ] = True
    free_response_channels: Annotated[tuple[str, ...], describe("groups in which everything is answered, by id")] = ()
    streaming: Annotated[Literal["auto", "edit", "off"], describe("whether an answer can be seen while it grows")] = (
        "auto"
    )


class TelegramSettings(PlatformSettings, frozen=True, kw_only=True):
    """Telegram, by long polling."""

    token: Annotated[Secret, describe("the bot's token, from @BotFather")] = Secret()
    base_url: Annotated[str, describe("a Bot API server of one's own", pattern=HTTP_PATTERN)] = ""
    base_file_url: Annotated[str, describe("where that server keeps files", pattern=HTTP_PATTERN)] = ""
    proxy: Annotated[Secret, describe("a proxy for all that goes to Telegram; its address may hold a password")] = (
        Secret()
    )


class DiscordSettings(PlatformSettings, frozen=True, kw_only=True):
    """Discord, by its gateway."""

    token: Annotated[Secret, describe("the bot's token, from the developer portal")] = Secret()
    allowed_roles: Annotated[tuple[str, ...], describe("ids of roles whose members may speak")] = ()
    allowed_channels: Annotated[
        tuple[str, ...], describe("ids of the channels that are listened to; by default all")
    ] = ()
    auto_thread: Annotated[bool, describe("answer a mention in a channel in a thread of its own")] = True
    api_url: Annotated[str, describe("another address of the HTTP API", pattern=HTTP_PATTERN)] = ""
    gateway_url: Annotated[str, describe("another address of the gateway", pattern=WEBSOCKET_PATTERN)] = ""


class SlackSettings(PlatformSettings, frozen=True, kw_only=True):
    """Slack, by Socket Mode."""

    bot_token: Annotated[Secret, describe("the bot's token, `xoxb-...`")] = Secret()
    app_token: Annotated[Secret, describe("the app's token for Socket Mode, `xapp-...`")] = Secret()
    allow_bots: Annotated[Literal["none", "mentions", "all"], describe("which messages of other bots are answered")] = (
        "none"
    )
    base_url: Annotated[str, describe("another address of the Web API", pattern=HTTP_PATTERN)] = ""


class AllPlatformSettings(Struct, frozen=True, kw_only=True):
    """The chat networks."""

    telegram: TelegramSettings = TelegramSettings()
    discord: DiscordSettings = DiscordSettings()
    slack: SlackSettings = SlackSettings()
