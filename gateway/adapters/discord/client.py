"""The client of discord.py as we use it: no memory of messages and members, no pings, and events in their order.

The library would start a task for each of its events. This client passes each one on at once instead, in the order in
which Discord sent it. An event that the library cannot read would end its connection, and the next one too; so each is
read by itself, and an unreadable one is skipped.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import discord

from gateway.adapters.discord.connection import make_intents
from gateway.adapters.discord.request_rate import DiscordHttp

HEARTBEAT = 60.0  # seconds without an answer after which the library gives up a connection
GUILD_PAUSE = 0.25  # seconds after the last server that arrived, until the library takes the list for complete

EventListener: TypeAlias = Callable[..., None]
EventParser: TypeAlias = Callable[[Any], None]
SkipEvent: TypeAlias = Callable[[str, Callable[[], Any], Exception], None]

FIRST_EVENTS = ("READY", "RESUMED")  # without them a connection is not usable


class DiscordClient(discord.Client):
    """The client that passes Discord's events to `listeners`, by the names of discord.py."""

    def __init__(self) -> None:
        super().__init__(
            intents=make_intents(),
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            allowed_mentions=discord.AllowedMentions.none(),
            heartbeat_timeout=HEARTBEAT,
            guild_ready_timeout=GUILD_PAUSE,
        )
        self._hear: Mapping[str, EventListener] = {}
        self._readers: EventParsers | None = None

    def _get_state(self, **options: Any) -> Any:
        """Install our HTTP client; at this moment the library has its own, and has not passed it on yet."""
        self.http = DiscordHttp(self.loop)
        return super()._get_state(**options)

    @contextmanager
    def telling(self, listeners: Mapping[str, EventListener], skip: SkipEvent) -> Iterator[None]:
        """Pass events to `listeners` inside the block, and unreadable ones to `skip`."""
        self._hear = listeners
        self._connection.parsers = self._readers = EventParsers(self._connection.parsers, skip)
        try:
            yield
        finally:
            self._hear = {}  # the listener has gone

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        super().dispatch(event, *args, **kwargs)
        if (hear := self._hear.get(event)) is not None and self._readers is not None:
            with self._readers.skipping(event, partial(repr, args)):
                hear(*args)


class EventParsers(dict[str, EventParser]):
    """The library's readers of Discord's events, by Discord's names, each guarded."""

    def __init__(self, parsers: Mapping[str, EventParser], skip: SkipEvent) -> None:
        super().__init__(parsers)
        self._skip = skip
        self._raw: Any = None  # the event that is being read now

    def __getitem__(self, event: object) -> EventParser:
        """Return the guarded reader of an event.

        Raises KeyError for an unknown event, as the library expects, also if its name is not text.
        """
        if not isinstance(event, str):
            raise KeyError(event)
        parse = super().__getitem__(event)
        return parse if event in FIRST_EVENTS else partial(self._parse, event, parse)

    def _parse(self, event: str, parse: EventParser, data: Any) -> None:
        self._raw = data
        with self.skipping(event, lambda: data):
            parse(data)
        self._raw = None

    @contextmanager
    def skipping(self, event: str, describe: Callable[[], Any]) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - what one event does wrong must not end the connection
            raw = self._raw
            self._skip(event, describe if raw is None else lambda: raw, error)
