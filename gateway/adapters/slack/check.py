"""The check of the two tokens: whose they are, and what the app may do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.folder import PlatformReport
from gateway.adapters.slack.connection import (
    ERRORS,
    TIMEOUT,
    fetch_identity,
    fetch_socket_url,
    make_client,
)
from gateway.adapters.slack.settings import SlackSettings

INVITE = "in a channel where it shall answer, type /invite and its name"


async def check(settings: SlackSettings) -> PlatformReport:
    """Return the app's name and workspace, and the steps that are missing; both tokens are checked.

    Raises:
        AdapterError: a token is not valid, or Slack cannot be reached.
    """
    async with open_client(settings) as web:
        me, complaints = await fetch_identity(web)
        if settings.mode == "socket":
            await fetch_socket_url(web, settings)
        return PlatformReport(f"{me.name} in {me.workspace}", me.url, (*complaints, INVITE))


async def say(settings: SlackSettings, chat: str, text: str) -> None:
    """Send one text to a channel, or to a person.

    Raises:
        AdapterError: Slack refused it.
    """
    async with open_client(settings) as web:
        await web.chat_postMessage(channel=chat, markdown_text=text, unfurl_links=False, unfurl_media=False)


@asynccontextmanager
async def open_client(settings: SlackSettings) -> AsyncIterator[AsyncWebClient]:
    web = make_client(settings)
    with ERRORS.translated():
        async with aiohttp.ClientSession(timeout=TIMEOUT) as web.session:
            yield web
