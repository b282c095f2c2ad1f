"""The receiver of Discord's events: messages, edits, deletions, reactions and interactions go into the journal.

Discord's gateway needs no confirmation, and gets none: messages that a connection has received and the journal lacks
are read again behind the marks. New messages wait until that is done.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio.abc
import discord

from gateway.adapters.discord.channels import address_of, is_listened_to
from gateway.adapters.discord.client import EventListener
from gateway.adapters.discord.connection import PLATFORM
from gateway.adapters.discord.files import fetch_file
from gateway.adapters.discord.history import DiscordHistory, fetch_member
from gateway.adapters.discord.history_reader import DiscordHistoryReader
from gateway.adapters.discord.interactions import DiscordInteractions
from gateway.adapters.discord.reader import DiscordIncoming, DiscordReader, describe_message, roles_of
from gateway.adapters.discord.settings import DiscordSettings
from gateway.adapters.shared.adapter import AdapterContext, Presence
from gateway.adapters.shared.inbox import Inbox
from gateway.adapters.shared.incoming import RecentMessages, check_message, make_reaction
from gateway.adapters.shared.read_positions import ReadMarks
from gateway.messages import message as messages
from gateway.messages.pieces import MessageName

log = logging.getLogger(__name__)

LIST_PAUSE = 1.0  # seconds; a list of 1,000 channels takes 35 ms
CHANNEL_EVENTS = (
    *("guild_channel_create", "guild_channel_update", "guild_channel_delete"),
    *("guild_available", "guild_join", "guild_remove", "guild_update"),
)


class DiscordReceiver:
    """The receiver of one bot's events."""

    def __init__(
        self,
        client: discord.Client,
        tasks: anyio.abc.TaskGroup,
        presses: DiscordInteractions,
        settings: DiscordSettings,
        context: AdapterContext,
        presence: Presence,
        recent: RecentMessages,
    ) -> None:
        assert client.user
        self._client = client
        self._tasks = tasks
        self._presses = presses
        self._settings = settings
        self._context = context
        self._presence = presence
        self._bot = str(client.user.id)
        self._is_listing = False
        marks = ReadMarks(context.parts.engine, PLATFORM, self._bot)
        self._reader = DiscordReader(client.user, settings, context, marks)
        self.inbox = Inbox(context, self._bot, marks, recent.note, fetch_file)
        history = DiscordHistory(client, settings, marks, context.parts.access, presence)
        self.history = DiscordHistoryReader(client, tasks, history, marks, self.inbox, self._take_again)

    @property
    def listeners(self) -> dict[str, EventListener]:
        """The listeners, by discord.py's names of events."""
        return {
            **self.history.listeners,
            **{name: partial(self._list_again, self.history.listeners.get(name)) for name in CHANNEL_EVENTS},
            "message": lambda message: self._hear(message, self._reader.read(message)),
            "raw_message_edit": self._edit,
            "raw_message_delete": lambda event: self._deleted(event, {event.message_id}),
            "raw_bulk_message_delete": lambda event: self._deleted(event, event.message_ids),
            "raw_reaction_add": self._reaction,
            "raw_reaction_remove": self._reaction,
            "interaction": self._interaction,
            "socket_event_type": lambda _name: self._presence.answered(),
        }

    def _list_again(self, then: EventListener | None, *changed: Any) -> None:
        if not self._is_listing:  # at a start, each guild has an event
            self._is_listing = True
            self._tasks.start_soon(self._list_soon)
        if then is not None:
            then(*changed)

    async def _list_soon(self) -> None:
        await anyio.sleep(LIST_PAUSE)
        self._is_listing = False
        self.learn_channels()

    def learn_channels(self) -> None:
        """Take in the names of the channels that Discord lists for the bot."""
        named, names = self._context.make_chat_name, self._context.parts.places.chat_names.names
        channels = [(address_of(one), one) for guild in self._client.guilds for one in guild.channels]
        listed = (named(at.chat_id, one.name, one.guild.name) for at, one in channels if at is not None)
        names.learn_chats(self._context.served_as, listed)

    async def _take_again(self, message: discord.Message) -> None:
        with self._presence.skipping("message", partial(describe_message, message)):
            if (arrival := self._reader.read(message)) is not None:
                check_message(arrival.message)
                await self.inbox.take(arrival, str(message.channel.id))

    def _edit(self, event: discord.RawMessageUpdateEvent) -> None:
        """Take an edit by a person; Discord also reports an edit when it has fetched a link's preview."""
        if event.message.edited_at is not None:
            self._hear(event.message, self._reader.read(event.message, is_edit=True))

    def _deleted(self, event: discord.RawMessageDeleteEvent | discord.RawBulkMessageDeleteEvent, ids: set[int]) -> None:
        """Take the deletion of messages; Discord does not say whose they were, nor who deleted them."""
        address = address_of(self._client.get_channel(event.channel_id))
        chat = address.chat_id if address else str(event.channel_id)
        for one in ids:
            name = MessageName(PLATFORM, chat, str(one))
            take = partial(self.inbox.delete, name, str(event.channel_id))
            self._tasks.start_soon(self._skipping, "deletion", partial(repr, event), take)

    def _hear(self, message: discord.Message, arrival: DiscordIncoming | None) -> None:
        if arrival is not None:
            check_message(arrival.message)
            self._presence.received()
            take = partial(self._wait_and_take, arrival, str(message.channel.id))
            self._tasks.start_soon(self._skipping, "message", partial(describe_message, message), take)

    async def _skipping(self, kind: str, payload: Callable[[], Any], take: Callable[[], Awaitable[None]]) -> None:
        with self._presence.skipping(kind, payload):
            await take()

    async def _wait_and_take(self, arrival: DiscordIncoming, channel: str) -> None:
        await self.inbox.is_caught_up.wait()
        await self.inbox.take(arrival, channel)

    def _reaction(self, event: discord.RawReactionActionEvent) -> None:
        is_bot = event.member is not None and event.member.bot
        if str(event.user_id) != self._bot and not is_bot:
            self._tasks.start_soon(self._skipping, "reaction", partial(repr, event), partial(self._react, event))

    async def _react(self, event: discord.RawReactionActionEvent) -> None:
        channel = self._client.get_channel(event.channel_id)
        address = address_of(channel)
        if address is None:
            kind: messages.ChatType = "group" if event.guild_id else "dm"
            address = messages.Address(PLATFORM, str(event.channel_id), kind)
        elif not is_listened_to(self._settings, channel):
            return
        emoji = [str(event.emoji)]
        change = {"added": emoji} if event.event_type == "REACTION_ADD" else {"removed": emoji}
        roles = await self._roles(event)
        message = make_reaction(address, str(event.user_id), str(event.message_id), **change, roles=roles)
        await self._context.receive(message, bot=self._bot)

    async def _roles(self, event: discord.RawReactionActionEvent) -> list[str]:
        """Return the roles of the person who reacted.

        Discord omits them when a reaction is removed, and they are fetched if access depends on them.
        """
        guild = self._client.get_guild(event.guild_id) if event.guild_id else None
        return roles_of(event.member or await fetch_member(guild, event.user_id, self._context.parts.access))

    def _interaction(self, interaction: discord.Interaction) -> None:
        self._presence.received()
        take = partial(self._presses.take, interaction)
        self._tasks.start_soon(self._skipping, "interaction", lambda: interaction.data, take)
