"""Discord's word on a token: whose it is, and what the bot may see."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import discord

from gateway.adapters.discord.connection import FAULTS, PORTAL, in_words, point_at
from gateway.adapters.discord.line import Line
from gateway.adapters.discord.places import Places
from gateway.adapters.network.check import Checked
from gateway.config.platforms import Discord
from gateway.messages import Address

INTENT = f"at {PORTAL}, Bot, Privileged Gateway Intents, switch on Message Content Intent: without it nothing works"
INVITE = "open the link, and add the bot to a server; whoever shares a server with it can write to it"
RIGHTS = discord.Permissions(
    view_channel=True,
    send_messages=True,
    send_messages_in_threads=True,
    create_public_threads=True,
    attach_files=True,
    read_message_history=True,
    add_reactions=True,
)


async def check(settings: Discord) -> Checked:
    """Who the bot is.

    Raises:
        AdapterError: the token is not good, or Discord cannot be reached.
    """
    async with connected(settings) as client:
        application, me = client.application, client.user
        assert application
        assert me
        flags = application.flags
        may_read = flags.gateway_message_content or flags.gateway_message_content_limited
        link = discord.utils.oauth_url(application.id, permissions=RIGHTS, scopes=("bot", "applications.commands"))
        return Checked(f"@{me.name} (id {me.id})", link, (*(() if may_read else (INTENT,)), INVITE))


async def say(settings: Discord, chat: str, text: str) -> None:
    """One text into a channel, or to a person.

    Raises:
        AdapterError: Discord refused it.
    """
    async with connected(settings) as client:
        where, _ = await Places(client, lambda _message: "").find(Address("discord", chat))
        await where.send(text, suppress_embeds=True)


@asynccontextmanager
async def connected(settings: Discord) -> AsyncIterator[discord.Client]:
    """With the token proved, and without the gateway."""
    point_at(settings)
    client = Line({})
    try:
        await client.login(settings.token.reveal())
        yield client
    except FAULTS as error:
        raise in_words(error) from None
    finally:
        await client.close()
