"""The settings of Telegram, and facts about it that need no library."""

from typing import Annotated, Literal

from gateway.config.fields import HTTP_PATTERN, Secret, describe
from gateway.config.platform_settings import PlatformSettings, PlatformSpec
from gateway.logs.redaction import TokenShape
from gateway.messages.parts import Location, Poll


class TelegramSettings(PlatformSettings, frozen=True, kw_only=True):
    """Telegram, by long polling, or by its calls to the port."""

    NATIVE_PARTS = (Poll, Location)
    IS_STAMPED = True

    token: Annotated[Secret, describe("the bot's token, from @BotFather")] = Secret()
    mode: Annotated[
        Literal["polling", "webhook"],
        describe(
            "`polling`: the gateway asks for news; `webhook`: Telegram calls `/networks/telegram` under `web.url`"
        ),
    ] = "polling"
    base_url: Annotated[str, describe("a Bot API server of one's own", pattern=HTTP_PATTERN)] = ""
    base_file_url: Annotated[str, describe("where that server keeps files", pattern=HTTP_PATTERN)] = ""
    proxy: Annotated[Secret, describe("a proxy for all that goes to Telegram; its address may hold a password")] = (
        Secret()
    )

    @property
    def is_called(self) -> bool:
        return self.mode == "webhook"


SPEC = PlatformSpec(
    settings=TelegramSettings,
    ids="numbers",
    user_id=r"[0-9]{1,20}",
    chat_id=r"-?[0-9]{1,20}",
    variables={
        "TELEGRAM_BOT_TOKEN": "platforms.telegram.token",
        "TELEGRAM_GROUP_ALLOWED_USERS": "access.group_users.telegram",
        "TELEGRAM_GROUP_ALLOWED_CHATS": "access.chats.telegram",
        "TELEGRAM_FREE_RESPONSE_CHATS": "platforms.telegram.free_response_channels",
        "TELEGRAM_PROXY": "platforms.telegram.proxy",
        "TELEGRAM_BASE_URL": "platforms.telegram.base_url",
        "TELEGRAM_BASE_FILE_URL": "platforms.telegram.base_file_url",
    },
    unsupported_variables={
        "TELEGRAM_WEBHOOK_URL": (
            "webhooks are not offered by variables; set `web.url` and `platforms: {telegram: {mode: webhook}}`"
        )
    },
    token_shapes=(TokenShape((":", "%3A", "%3a"), r"(?<![0-9])[0-9]{6,12}(?::|%3[Aa])[A-Za-z0-9_-]{30,}"),),
    noisy_loggers=("telegram",),
    libraries=("telegram", "pyromark"),
)
