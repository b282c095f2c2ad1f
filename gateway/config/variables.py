"""Which names of the environment mean which settings: those that Hermes's users have, and ours, `GATEWAY_...`."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from msgspec import inspect

from gateway.config.settings import Settings

KeyPath: TypeAlias = tuple[str, ...]
Shape: TypeAlias = Literal["text", "list", "flag"]

PREFIX = "GATEWAY_"
PLATFORMS = ("telegram", "discord", "slack")


class SettingVariable(NamedTuple):
    """A variable, the setting that it means, and how its text is read; a list is separated by commas."""

    variable: str
    path: KeyPath
    shape: Shape


_HERMES_VARIABLES: Mapping[str, str] = {
    "TELEGRAM_BOT_TOKEN": "platforms.telegram.token",
    "TELEGRAM_ALLOWED_USERS": "access.users.telegram",
    "TELEGRAM_GROUP_ALLOWED_USERS": "access.group_users.telegram",
    "TELEGRAM_GROUP_ALLOWED_CHATS": "access.chats.telegram",
    "TELEGRAM_HOME_CHANNEL": "platforms.telegram.home_channel",
    "TELEGRAM_HOME_CHANNEL_NAME": "platforms.telegram.home_channel_name",
    "TELEGRAM_REQUIRE_MENTION": "platforms.telegram.require_mention",
    "TELEGRAM_FREE_RESPONSE_CHATS": "platforms.telegram.free_response_channels",
    "TELEGRAM_PROXY": "platforms.telegram.proxy",
    "TELEGRAM_BASE_URL": "platforms.telegram.base_url",
    "TELEGRAM_BASE_FILE_URL": "platforms.telegram.base_file_url",
    "DISCORD_BOT_TOKEN": "platforms.discord.token",
    "DISCORD_ALLOWED_USERS": "access.users.discord",
    "DISCORD_ALLOWED_ROLES": "platforms.discord.allowed_roles",
    "DISCORD_ALLOWED_CHANNELS": "platforms.discord.allowed_channels",
    "DISCORD_HOME_CHANNEL": "platforms.discord.home_channel",
    "DISCORD_HOME_CHANNEL_NAME": "platforms.discord.home_channel_name",
    "DISCORD_REQUIRE_MENTION": "platforms.discord.require_mention",
    "DISCORD_FREE_RESPONSE_CHANNELS": "platforms.discord.free_response_channels",
    "DISCORD_AUTO_THREAD": "platforms.discord.auto_thread",
    "DISCORD_API_URL": "platforms.discord.api_url",
    "DISCORD_GATEWAY_URL": "platforms.discord.gateway_url",
    "SLACK_BOT_TOKEN": "platforms.slack.bot_token",
    "SLACK_APP_TOKEN": "platforms.slack.app_token",
    "SLACK_ALLOWED_USERS": "access.users.slack",
    "SLACK_HOME_CHANNEL": "platforms.slack.home_channel",
    "SLACK_HOME_CHANNEL_NAME": "platforms.slack.home_channel_name",
    "SLACK_REQUIRE_MENTION": "platforms.slack.require_mention",
    "SLACK_FREE_RESPONSE_CHANNELS": "platforms.slack.free_response_channels",
    "SLACK_ALLOW_BOTS": "platforms.slack.allow_bots",
    "SLACK_API_URL": "platforms.slack.base_url",
    "GATEWAY_ALLOWED_USERS": "access.users.all",
    "HERMES_MODEL": "model.name",
}

ALLOW_ALL_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "GATEWAY_ALLOW_ALL_USERS": PLATFORMS,
    **{f"{network.upper()}_ALLOW_ALL_USERS": (network,) for network in PLATFORMS},
}
"""Variables that, when true, open networks to everybody."""

UNSUPPORTED_VARIABLES: Mapping[str, str] = {
    "TELEGRAM_WEBHOOK_URL": "webhooks are not offered: Telegram is read by long polling, which needs no address",
}
"""Variables of Hermes's that would make a difference, and make none here."""


@cache
def list_hermes_variables() -> tuple[SettingVariable, ...]:
    """Those that Hermes knows too: what is wrong with them may be right for Hermes, and does not stop us."""
    shapes = {".".join(name.path): name for name in list_own_variables()}
    return tuple(shapes[dotted]._replace(variable=variable) for variable, dotted in _HERMES_VARIABLES.items())


@cache
def list_own_variables() -> tuple[SettingVariable, ...]:
    """Ours: one for each setting that one text can hold. Where Hermes has a name for the setting, ours counts more."""
    root = inspect.type_info(Settings)
    assert isinstance(root, inspect.StructType)
    return tuple(_list_variables(root, ()))


def _list_variables(struct: inspect.StructType, path: KeyPath) -> Iterator[SettingVariable]:
    for field in struct.fields:
        here, kind = (*path, field.encode_name), _unwrap_type(field.type)
        if isinstance(kind, inspect.StructType):
            yield from _list_variables(kind, here)
        elif isinstance(kind, inspect.VarTupleType) and not isinstance(
            _unwrap_type(kind.item_type), inspect.StructType
        ):
            yield SettingVariable(_variable_of(here), here, "list")
        elif not isinstance(kind, inspect.VarTupleType | inspect.DictType):
            yield SettingVariable(_variable_of(here), here, "flag" if isinstance(kind, inspect.BoolType) else "text")


def _variable_of(path: KeyPath) -> str:
    """`logs.level` -> GATEWAY_LOGS_LEVEL, `gateway.shutdown_timeout` -> GATEWAY_SHUTDOWN_TIMEOUT."""
    return PREFIX + "_".join(path[1:] if path[0] == "gateway" else path).upper()


def _unwrap_type(kind: inspect.Type) -> inspect.Type:
    """The type without its description, and without the possibility of None."""
    while isinstance(kind, inspect.Metadata | inspect.UnionType):
        if isinstance(kind, inspect.Metadata):
            kind = kind.type
        else:
            kind = next(one for one in kind.types if not isinstance(one, inspect.NoneType))
    return kind
