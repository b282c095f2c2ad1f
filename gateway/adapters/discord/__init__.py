"""Discord, on discord.py, by its gateway. All that knows Discord is in this folder."""

from gateway.adapters.discord.adapter import DiscordAdapter
from gateway.adapters.shared import AdapterContext
from gateway.config.platform_settings import DiscordSettings


def adapter(settings: DiscordSettings, ground: AdapterContext) -> DiscordAdapter:
    return DiscordAdapter(settings, ground)
