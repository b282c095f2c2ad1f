"""The places of conversations on Discord: a channel, a thread below a channel, a person's direct chat with the bot.

A thread that grew out of a message has the message's id. So the address of an answer in its own thread is known before
the thread exists; the thread is made with the first message to it.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

import discord
import msgspec
from discord.http import HTTPClient

from gateway.adapters.discord.connection import PLATFORM
from gateway.adapters.discord.settings import DiscordSettings
from gateway.messages.message import Address

log = logging.getLogger(__name__)

LONGEST_NAME = 100  # characters of a thread's name
UNNAMED = "Conversation"
THREAD_IS_THERE = 160004
UNKNOWN_CHANNEL = 10003

Writable: TypeAlias = discord.abc.Messageable


def address_of(channel: Any) -> Address | None:
    """Return the address of a channel of discord.py; None for one that takes no messages."""
    if isinstance(channel, discord.DMChannel):
        return Address(PLATFORM, str(channel.id), "dm")
    if isinstance(channel, discord.Thread):
        return Address(PLATFORM, str(channel.parent_id), "thread", str(channel.id))
    if isinstance(channel, discord.abc.GuildChannel) and isinstance(channel, discord.abc.Messageable):
        return Address(PLATFORM, str(channel.id), "group")
    return None


def is_listened_to(settings: DiscordSettings, channel: Any) -> bool:
    """Return True if the settings allow the channel, the channel of the thread, or its category."""
    if isinstance(channel, discord.DMChannel) or not settings.allowed_channels:
        return True
    above = getattr(channel, "parent", None) or channel
    ids = {channel.id, getattr(channel, "parent_id", None), getattr(above, "category_id", None)}
    return any(str(one) in settings.allowed_channels for one in ids if one)


class DiscordChannels(msgspec.Struct, eq=False):
    """The channels by address. `title` returns the beginning of a message, to name its thread."""

    _client: discord.Client
    _title: Callable[[str], str]
    _chats: dict[int, discord.abc.Messageable] = {}
    _without_thread: set[int] = set()

    @property
    def http(self) -> HTTPClient:
        """The HTTP client, for requests that the library's channels do not offer."""
        return self._client.http

    async def find(self, address: Address) -> tuple[Writable, bool]:
        """Return the place to write to, and True if it is the thread that the address names.

        Raises:
            discord.HTTPException: the place was not found, or the bot has no access.
        """
        if not address.thread_id:
            return await self._channel(int_of(address.chat_id)), False
        thread = int_of(address.thread_id)
        if thread in self._without_thread:
            return await self._channel(int_of(address.chat_id)), False
        known: Any = self._client.get_channel(thread) or self._chats.get(thread)
        if known is not None:
            return known, True
        return await self._make_thread(address, thread)

    async def message(self, address: Address, number: str) -> discord.PartialMessage:
        """Return a message by its id, without a request."""
        where, _ = await self.find(address)
        channel = self._client.get_partial_messageable(id_of(where))
        return channel.get_partial_message(int_of(number))

    async def _make_thread(self, address: Address, thread: int) -> tuple[Writable, bool]:
        """Make the thread of a message, and return it; return the channel itself if that is not possible."""
        channel = await self._channel(int_of(address.chat_id))
        message = self._client.get_partial_messageable(id_of(channel)).get_partial_message(thread)
        http = self._client.http
        try:
            await http.start_thread_with_message(
                message.channel.id, thread, name=self._title(address.thread_id) or UNNAMED, auto_archive_duration=1440
            )
        except discord.HTTPException as error:
            if error.code != THREAD_IS_THERE and error.status != 404:
                log.info("no thread can be made in %s, the answer goes into the channel: %s", address.chat_id, error)
                self._without_thread.add(thread)
                return channel, False
        made = self._chats[thread] = self._client.get_partial_messageable(thread)
        return made, True

    async def _channel(self, number: int) -> Writable:
        """Return a channel, or the direct chat with a person who has this id."""
        known: Any = self._client.get_channel(number) or self._chats.get(number)
        if known is not None:
            return known  # type: ignore[no-any-return]
        try:
            found: Any = await self._client.fetch_channel(number)
        except discord.NotFound as error:
            if error.code != UNKNOWN_CHANNEL:
                raise
            found = await (await self._client.fetch_user(number)).create_dm()
        self._chats[number] = found
        return found  # type: ignore[no-any-return]


def id_of(channel: Writable) -> int:
    return int(getattr(channel, "id"))  # noqa: B009 - every channel has one, which the library's protocol does not say


def int_of(text: str) -> int:
    """Return an id of Discord's as a number; 0, which nothing has, for any other text."""
    return int(text) if text.isdecimal() else 0
