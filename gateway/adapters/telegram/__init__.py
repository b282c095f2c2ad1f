"""Telegram, on python-telegram-bot's `Bot`, read by long polling. All that knows Telegram is in this folder."""

from gateway.adapters.shared import AdapterContext
from gateway.adapters.telegram.adapter import TelegramAdapter
from gateway.config.platform_settings import TelegramSettings


def adapter(settings: TelegramSettings, ground: AdapterContext) -> TelegramAdapter:
    return TelegramAdapter(settings, ground)
