"""discord.py's client, as we use it: no memory of messages and members, no pings, and its news told in their order.

The library would start a task for each of its events. What it tells is told here at once instead, in the order in
which Discord sent it.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

import discord

from gateway.adapters.discord.connection import make_intents

log = logging.getLogger(__name__)

HEARTBEAT = 60.0  # seconds without an answer after which the library gives a connection up
GUILD_PAUSE = 0.25  # seconds after the last server that came in until the library takes them for all
LONGEST_WAIT = 30.0  # that the library waits where Discord wants silence; longer waits are the outbox's

EventListener: TypeAlias = Callable[..., None]


class DiscordClient(discord.Client):
    """Tells what it hears to `listeners`, by the names of discord.py's events."""

    def __init__(self) -> None:
        super().__init__(
            intents=make_intents(),
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            allowed_mentions=discord.AllowedMentions.none(),
            heartbeat_timeout=HEARTBEAT,
            guild_ready_timeout=GUILD_PAUSE,
            max_ratelimit_timeout=LONGEST_WAIT,
        )
        self.listeners: dict[str, EventListener] = {}

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        super().dispatch(event, *args, **kwargs)
        if (hear := self.listeners.get(event)) is not None:
            try:
                hear(*args)
            except Exception:  # what one event does wrong must not end the connection
                log.exception("Discord's %s is not understood, and passed over", event)
