"""The settings of the chat networks."""

from typing import Annotated, Literal

from msgspec import Struct

from gateway.config.meaning import HTTP, WEBSOCKET, means
from gateway.config.secret import Secret


class Network(Struct, frozen=True, kw_only=True):
    """What all networks have."""

    enabled: Annotated[bool | None, means("whether it is used; by default where its token is there")] = None
    home_channel: Annotated[
        str, means("the id of the chat that gets what nobody asked for: reports, alerts, BOOT.md")
    ] = ""
    home_channel_name: Annotated[str, means("what that chat is called, for people")] = ""
    require_mention: Annotated[bool, means("in groups, answer only when spoken to: a mention, a reply, a command")] = (
        True
    )
    free_response_channels: Annotated[tuple[str, ...], means("groups in which everything is answered, by id")] = ()
    streaming: Annotated[Literal["auto", "edit", "off"], means("whether an answer can be seen while it grows")] = "auto"


class Telegram(Network, frozen=True, kw_only=True):
    """Telegram, by long polling."""

    token: Annotated[Secret, means("the bot's token, from @BotFather")] = Secret()
    base_url: Annotated[str, means("a Bot API server of one's own", pattern=HTTP)] = ""
    base_file_url: Annotated[str, means("where that server keeps files", pattern=HTTP)] = ""
    proxy: Annotated[Secret, means("a proxy for all that goes to Telegram; its address may hold a password")] = Secret()


class Discord(Network, frozen=True, kw_only=True):
    """Discord, by its gateway."""

    token: Annotated[Secret, means("the bot's token, from the developer portal")] = Secret()
    allowed_roles: Annotated[tuple[str, ...], means("ids of roles whose members may speak")] = ()
    allowed_channels: Annotated[tuple[str, ...], means("ids of the channels that are listened to; by default all")] = ()
    auto_thread: Annotated[bool, means("answer a mention in a channel in a thread of its own")] = True
    api_url: Annotated[str, means("another address of the HTTP API", pattern=HTTP)] = ""
    gateway_url: Annotated[str, means("another address of the gateway", pattern=WEBSOCKET)] = ""


class Slack(Network, frozen=True, kw_only=True):
    """Slack, by Socket Mode."""

    bot_token: Annotated[Secret, means("the bot's token, `xoxb-...`")] = Secret()
    app_token: Annotated[Secret, means("the app's token for Socket Mode, `xapp-...`")] = Secret()
    allow_bots: Annotated[Literal["none", "mentions", "all"], means("which messages of other bots are answered")] = (
        "none"
    )
    base_url: Annotated[str, means("another address of the Web API", pattern=HTTP)] = ""


class Platforms(Struct, frozen=True, kw_only=True):
    """The chat networks."""

    telegram: Telegram = Telegram()
    discord: Discord = Discord()
    slack: Slack = Slack()
