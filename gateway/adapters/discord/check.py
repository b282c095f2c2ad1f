"""The check of a token: whose bot it is, and what the bot may see."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import discord

from gateway.adapters.discord.channels import DiscordChannels
from gateway.adapters.discord.client import DiscordClient
from gateway.adapters.discord.connection import ERRORS, PORTAL, configure_library
from gateway.adapters.discord.settings import DiscordSettings
from gateway.adapters.shared.folder import PlatformReport
from gateway.messages.message import Address

INTENT = f"at {PORTAL}, Bot, Privileged Gateway Intents, switch on Message Content Intent: without it nothing works"
INVITE = "open the link, and add the bot to a server; people who share a server with it can write to it"
RIGHTS = discord.Permissions(
    view_channel=True,
    send_messages=True,
    send_messages_in_threads=True,
    create_public_threads=True,
    attach_files=True,
    read_message_history=True,
    add_reactions=True,
)


async def check(settings: DiscordSettings) -> PlatformReport:
    """Return the name of the bot, its invitation link, and the steps that are missing.

    Raises:
        AdapterError: the token is not valid, or Discord cannot be reached.
    """
    async with open_client(settings) as client:
        application, me = client.application, client.user
        assert application
        assert me
        flags = application.flags
        may_read = flags.gateway_message_content or flags.gateway_message_content_limited
        link = discord.utils.oauth_url(application.id, permissions=RIGHTS, scopes=("bot", "applications.commands"))
        return PlatformReport(f"@{me.name} (id {me.id})", link, (*(() if may_read else (INTENT,)), INVITE))


async def say(settings: DiscordSettings, chat: str, text: str) -> None:
    """Send one text to a channel, or to a person.

    Raises:
        AdapterError: Discord refused it.
    """
    async with open_client(settings) as client:
        where, _ = await DiscordChannels(client, lambda _message: "").find(Address("discord", chat))
        await where.send(text, suppress_embeds=True)


@asynccontextmanager
async def open_client(settings: DiscordSettings) -> AsyncIterator[discord.Client]:
    """Open a client that has logged in, without the gateway."""
    configure_library(settings)
    client = DiscordClient()
    try:
        with ERRORS.translated():
            await client.login(settings.token.reveal())
            yield client
    finally:
        await client.close()
