"""Discord, on discord.py, by its gateway. All that knows Discord is in this folder."""

from gateway.adapters.discord.adapter import DiscordAdapter
from gateway.adapters.network import Ground
from gateway.config.platforms import Discord


def adapter(settings: Discord, ground: Ground) -> DiscordAdapter:
    return DiscordAdapter(settings, ground)
