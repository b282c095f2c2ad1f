"""What was said while nobody listened: read again by HTTP, in people's own chats and in channels, oldest first."""

import logging
from collections.abc import AsyncIterator, Iterable
from typing import Any

import discord

from gateway.access import AccessControl
from gateway.adapters.discord.channels import is_listened_to
from gateway.adapters.discord.connection import ERRORS, PLATFORM, as_adapter_error
from gateway.adapters.discord.settings import DiscordSettings
from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.read_positions import MarksSnapshot, ReadMark, ReadMarks

log = logging.getLogger(__name__)

MOST = 200  # messages a channel
PAGE = 100
MOST_CHATS = 100
MOST_NEW_CHATS = 25  # Discord dislikes bots that open many


class DiscordHistory:
    """Reads what is behind the marks. A channel that cannot be read is passed over."""

    def __init__(
        self,
        client: discord.Client,
        settings: DiscordSettings,
        marks: ReadMarks,
        access: AccessControl,
        presence: Presence,
    ) -> None:
        self._client = client
        self._settings = settings
        self._marks = marks
        self._access = access
        self._presence = presence

    async def chats(self, since: MarksSnapshot) -> AsyncIterator[discord.Message]:
        """People's own chats with the bot; Discord does not list them, so they are known from the marks."""
        known = [int(mark.person) for mark in since.chats()]
        new = sorted(self._allowed() - set(known))
        for user in (*known[:MOST_CHATS], *new[:MOST_NEW_CHATS]):
            async for message in self._chat(user, since):
                yield message

    async def channels(self, guild: discord.Guild, since: MarksSnapshot) -> AsyncIterator[discord.Message]:
        """The channels and threads of a server in which something was said since."""
        every: tuple[Any, ...] = (*guild.text_channels, *guild.voice_channels, *guild.threads)
        for channel in every:
            if not is_listened_to(self._settings, channel) or not self._is_readable(guild, channel):
                continue
            if (behind := find_start(since, channel.id)) and (channel.last_message_id or 0) > behind:
                async for message in self._history(channel, behind):
                    yield await self._with_roles(guild, message)

    async def _chat(self, user: int, since: MarksSnapshot) -> AsyncIterator[discord.Message]:
        try:
            chat = await self._client.create_dm(discord.Object(user))
        except discord.HTTPException as error:
            log.info("the chat with %s cannot be read: %s", user, as_adapter_error(error))
            return
        if not self._marks.knows(str(chat.id)):
            await self._marks.move(ReadMark(str(chat.id), 0, str(user)))
        if behind := find_start(since, chat.id):
            async for message in self._history(chat, behind):
                yield message

    async def _history(self, channel: Any, behind: int) -> AsyncIterator[discord.Message]:
        count = 0
        with ERRORS.logged(log.info, "what was said in %s cannot be read", channel.id, only=discord.HTTPException):
            while count < MOST and (page := await self._client.http.logs_from(channel.id, PAGE, after=behind)):
                count += len(page)
                behind = max(int(raw["id"]) for raw in page)
                for raw in reversed(page):
                    if (message := self._build(channel, raw)) is not None:
                        yield message
        if count >= MOST:
            log.warning("in %s more was said than is read again; only the %d oldest messages were", channel.id, count)

    def _build(self, channel: Any, raw: Any) -> discord.Message | None:
        """One message; the library would read the whole page, or nothing of it."""
        try:
            return discord.Message(state=self._client._connection, channel=channel, data=raw)  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 - whatever a network may have sent
            self._presence.skip("message", lambda: raw, error)
            return None

    async def _with_roles(self, guild: discord.Guild, message: discord.Message) -> discord.Message:
        """Discord's history does not say which roles somebody has; it is asked where that decides who may speak."""
        if not isinstance(message.author, discord.Member):
            message.author = await fetch_member(guild, message.author.id, self._access) or message.author
        return message

    def _is_readable(self, guild: discord.Guild, channel: Any) -> bool:
        try:
            may = channel.permissions_for(guild.me)
        except discord.ClientException:
            return False  # a thread whose channel we may not see
        return bool(may.view_channel and may.read_message_history)

    def _allowed(self) -> set[int]:
        rules = self._access.rules
        everyone: Iterable[str] = (
            one for who in (rules.owners, rules.admins, rules.users) for one in who.get(PLATFORM, ())
        )
        return {int(one) for one in everyone if one.isdecimal()}


async def fetch_member(guild: discord.Guild | None, user: int, access: AccessControl) -> discord.Member | None:
    """Asks Discord for the roles of somebody where they decide who may speak; None: they are not known."""
    member = None
    if guild and access.rules.roles.get(PLATFORM):
        with ERRORS.logged(log.debug, "the roles of %s are not known", user, only=discord.HTTPException):
            member = await guild.fetch_member(user)
    return member


def find_start(since: MarksSnapshot, channel: int) -> int:
    """The message behind which a channel is to be read again; 0: we were never here before."""
    return max(int(since.at(str(channel))), snowflake_from(since.time)) if since.time else 0


def snowflake_from(seconds: float) -> int:
    """The id that a message of this time would have at least."""
    return max(int(seconds * 1000) - discord.utils.DISCORD_EPOCH, 0) << 22
