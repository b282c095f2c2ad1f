"""Discord, on discord.py, by its gateway. All that knows Discord is in this folder."""

from gateway.adapters.discord.adapter import DiscordAdapter
from gateway.adapters.shared import AdapterContext
from gateway.config.platforms import Discord


def adapter(settings: Discord, ground: AdapterContext) -> DiscordAdapter:
    return DiscordAdapter(settings, ground)
