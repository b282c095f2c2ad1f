"""Slack's word on the two tokens: whose they are, and what the app may do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.network.check import Checked
from gateway.adapters.slack.connection import FAULTS, door, in_words, introduced, make_web, missing
from gateway.config.platforms import Slack

INVITE = "in a channel where it shall answer, type /invite and its name"


async def check(settings: Slack) -> Checked:
    """Who the app is, by both tokens.

    Raises:
        AdapterError: one of them is not good, or Slack cannot be reached.
    """
    async with connected(settings) as web:
        me, lacks = await introduced(web)
        await door(web, settings)
        return Checked(f"{me.name} in {me.workspace}", me.url, (*([missing(lacks)] if lacks else []), INVITE))


async def say(settings: Slack, chat: str, text: str) -> None:
    """One text into a channel, or to a person.

    Raises:
        AdapterError: Slack refused it.
    """
    async with connected(settings) as web:
        await web.chat_postMessage(channel=chat, markdown_text=text, unfurl_links=False, unfurl_media=False)


@asynccontextmanager
async def connected(settings: Slack) -> AsyncIterator[AsyncWebClient]:
    web = make_web(settings)
    try:
        async with aiohttp.ClientSession() as web.session:
            yield web
    except FAULTS as error:
        raise in_words(error) from None
