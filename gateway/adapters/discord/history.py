"""The messages of a time without a connection: read again by HTTP, in direct chats and in channels, oldest first."""

import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import discord
import msgspec

from gateway.access.access_control import AccessControl
from gateway.adapters.discord.channels import is_listened_to
from gateway.adapters.discord.connection import ERRORS, PLATFORM
from gateway.adapters.discord.request_rate import retry_request
from gateway.adapters.discord.settings import DiscordSettings
from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.read_positions import MarksSnapshot, ReadMark, ReadMarks

log = logging.getLogger(__name__)

MOST = 200  # messages a channel
PAGE = 100
MOST_CHATS = 100
MOST_NEW_CHATS = 25


class DiscordHistory(msgspec.Struct, eq=False):
    """The reader of messages behind the marks.

    A channel that Discord refuses to show is skipped. One that must wait is read last; so is one whose request failed
    inside Discord, until it works again.
    """

    _client: discord.Client
    _settings: DiscordSettings
    _marks: ReadMarks
    _access: AccessControl
    _presence: Presence
    _later: list[tuple[Any, int]] = []

    async def chats(self, since: MarksSnapshot) -> AsyncIterator[discord.Message]:
        """Yield the messages of direct chats with the bot.

        Discord does not list these chats: they are known from the marks, and from people who were authorized there and
        have written nothing since.
        """
        marks = [(int(mark.chat), 0.0) for mark in since.chats()]
        let_in = [one for one in self._access.pairings.people if one.served_as == self._presence.name]
        new = [(int(one.chat_id), one.at) for one in let_in if not self._marks.knows(one.chat_id)]
        for number, begun in [*marks, *new][:MOST_CHATS]:
            if behind := find_start(since, number):
                chat = discord.DMChannel._from_message(self._client._connection, number)  # noqa: SLF001
                async for message in self._history(chat, max(behind, snowflake_from(begun))):
                    yield message

    async def rest(self, since: MarksSnapshot) -> AsyncIterator[discord.Message]:
        """Yield the messages that can be read last.

        They are from channels that Discord delayed, and from direct chats that are not known. A person who may write to
        the bot and never has may have begun while it was away. Each such chat is opened once for that: Discord dislikes
        bots that open many, and counts all of them together.
        """
        while self._later:
            channel, behind = self._later.pop()
            async for message in self._history(channel, behind, is_patient=True):
                yield message
        known = {mark.person for mark in since.chats()}
        new = sorted(self._allowed() - known) if since.time else []
        for user in new[:MOST_NEW_CHATS]:
            async for message in self._first_words(user, since):
                yield message

    async def _first_words(self, user: str, since: MarksSnapshot) -> AsyncIterator[discord.Message]:
        with ERRORS.logged(log.info, "the chat with %s cannot be read", user, only=discord.HTTPException):
            chat = await retry_request(partial(self._client.create_dm, discord.Object(int(user))))
            if not self._marks.knows(str(chat.id)):
                await self._marks.move(ReadMark(str(chat.id), 0, user))
            async for message in self._history(chat, find_start(since, chat.id), is_patient=True):
                yield message

    async def channels(self, guild: discord.Guild, since: MarksSnapshot) -> AsyncIterator[discord.Message]:
        """Yield the messages of a server's channels and threads that have new ones."""
        every: tuple[Any, ...] = (*guild.text_channels, *guild.voice_channels, *guild.threads)
        for channel in every:
            if not is_listened_to(self._settings, channel) or not self._is_readable(guild, channel):
                continue
            if (behind := find_start(since, channel.id)) and (channel.last_message_id or 0) > behind:
                async for message in self._history(channel, behind):
                    yield await self._with_roles(guild, message)

    async def _history(self, channel: Any, behind: int, *, is_patient: bool = False) -> AsyncIterator[discord.Message]:
        count = 0
        with ERRORS.logged(log.info, "what was said in %s cannot be read", channel.id, only=discord.HTTPException):
            try:
                while count < MOST and (page := await self._page(channel.id, behind, is_patient=is_patient)):
                    count += len(page)
                    behind = max(int(raw["id"]) for raw in page)
                    for raw in reversed(page):
                        if (message := self._build(channel, raw)) is not None:
                            yield message
            except (discord.RateLimited, discord.DiscordServerError):
                self._later.append((channel, behind))
        if count >= MOST:
            log.warning("in %s more was said than is read again; only the %d oldest messages were", channel.id, count)

    async def _page(self, channel: int, behind: int, *, is_patient: bool) -> list[Any]:
        ask = partial(self._client.http.logs_from, channel, PAGE, after=behind)
        return await (retry_request(ask) if is_patient else ask())

    def _build(self, channel: Any, raw: Any) -> discord.Message | None:
        """Parse one message; the library would parse the whole page, or nothing of it."""
        try:
            return discord.Message(state=self._client._connection, channel=channel, data=raw)  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 - whatever a network may have sent
            self._presence.skip("message", lambda: raw, error)
            return None

    async def _with_roles(self, guild: discord.Guild, message: discord.Message) -> discord.Message:
        """Fetch the author's roles if they decide on access; Discord's history does not have them."""
        if not isinstance(message.author, discord.Member):
            message.author = await fetch_member(guild, message.author.id, self._access) or message.author
        return message

    def _is_readable(self, guild: discord.Guild, channel: Any) -> bool:
        try:
            may = channel.permissions_for(guild.me)
        except discord.ClientException:
            return False  # a thread whose channel is hidden from the bot
        return bool(may.view_channel and may.read_message_history)

    def _allowed(self) -> set[str]:
        """Return the people whom the access rules name, and allow to write in a direct chat."""
        named = (one for one in self._access.rules.list_people(PLATFORM) if one.isdecimal())
        return {one for one in named if self._access.find_highest_role(PLATFORM, one)}


async def fetch_member(guild: discord.Guild | None, user: int, access: AccessControl) -> discord.Member | None:
    """Fetch a person's roles from Discord if they decide on access; None: they are not known."""
    member = None
    if guild and access.rules.roles:
        with ERRORS.logged(log.debug, "the roles of %s are not known", user, only=discord.HTTPException):
            member = await retry_request(partial(guild.fetch_member, user))
    return member


def find_start(since: MarksSnapshot, channel: int) -> int:
    """Return the message behind which a channel is to be read again; 0: the bot was never here before."""
    return max(int(since.at(str(channel))), snowflake_from(since.time)) if since.time else 0


def snowflake_from(seconds: float) -> int:
    """Return the lowest possible id of a message of this time."""
    return max(int(seconds * 1000) - discord.utils.DISCORD_EPOCH, 0) << 22
