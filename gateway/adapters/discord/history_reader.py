"""The times at which missed messages are read again: after a new connection, and when a server comes late.

A connection that Discord resumed needs no reading. New messages wait meanwhile, and nothing counts as read before that
is done.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import anyio.abc
import discord
import msgspec

from gateway.adapters.discord.client import EventListener
from gateway.adapters.discord.history import DiscordHistory
from gateway.adapters.shared.inbox import Inbox
from gateway.adapters.shared.read_positions import MarksSnapshot, ReadMarks


class DiscordHistoryReader(msgspec.Struct, eq=False):
    """The listener to the state of the connection and of the servers; `take` gets each message that is read."""

    _client: discord.Client
    _tasks: anyio.abc.TaskGroup
    _history: DiscordHistory
    _marks: ReadMarks
    _inbox: Inbox[Any]
    _take: Callable[[discord.Message], Awaitable[None]]
    _since: MarksSnapshot = MarksSnapshot({}, 0.0, 0.0)  # until `load`
    _scope: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)  # of the reading for this connection
    _absent: dict[int, MarksSnapshot] = {}  # servers that Discord has lost, and how far each was read
    is_ready: anyio.Event = msgspec.field(default_factory=anyio.Event)

    @property
    def listeners(self) -> dict[str, EventListener]:
        return {
            "connect": self._connected,
            "disconnect": self._disconnected,
            "resumed": self._resumed,
            "ready": self._ready,
            "guild_unavailable": self._guild_lost,
            "guild_available": self._guild,
            "guild_join": self._guild,
        }

    async def load(self) -> None:
        """Load how far everything was read; from then on events may come.

        The start is written down before Discord knows of us. So a message that arrives on a connection that fails
        before it has caught up is read again by the next one, even if it was the very first.
        """
        await self._marks.load()
        self._since = self._marks.since()
        await self._marks.begin(time.time())

    def _connected(self) -> None:
        """Note a new connection, which gets none of the earlier messages: new ones wait until those are read.

        If an earlier connection broke before it had caught up, its waiting messages and its starting point pass to the
        new one.
        """
        self._absent.clear()
        self._inbox.is_told = True
        if self._inbox.is_caught_up.is_set():
            self._inbox.is_caught_up = anyio.Event()
            self._since = self._marks.since()
        else:
            self._scope.cancel()

    def _disconnected(self) -> None:
        self._inbox.is_told = False

    def _resumed(self) -> None:
        """Note that the connection was resumed: Discord has sent all messages of the meantime."""
        self._inbox.is_told = True

    def _ready(self) -> None:
        self._scope = anyio.CancelScope()
        self._tasks.start_soon(self._read_again, self._inbox.is_caught_up, self._scope)

    def _guild_lost(self, guild: discord.Guild) -> None:
        self._absent.setdefault(guild.id, self._marks.since())

    def _guild(self, guild: discord.Guild) -> None:
        """Read a server that came late: joined, or back after Discord had lost it for a while."""
        if self._inbox.is_caught_up.is_set() or self._inbox.is_reading:
            self._tasks.start_soon(self._read_guild, guild, self._absent.pop(guild.id, self._since))

    async def _read_guild(self, guild: discord.Guild, since: MarksSnapshot) -> None:
        with self._inbox.reading():
            await self._take_all(self._history.channels(guild, since))

    async def _read_again(self, done: anyio.Event, scope: anyio.CancelScope) -> None:
        begun, since = time.time(), self._since
        with scope, self._inbox.reading():
            await self._take_all(self._history.chats(since))
            for guild in self._client.guilds:
                await self._read_guild(guild, since)
            done.set()
            self.is_ready.set()
            await self._take_all(self._history.rest(since))
            await self._marks.note_alive(begun)

    async def _take_all(self, found: AsyncIterator[discord.Message]) -> None:
        async for message in found:
            await self._take(message)
