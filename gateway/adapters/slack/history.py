"""What was said while nobody listened: Slack delivers again for some minutes only, so the rest is read, oldest first.

Read are people's own chats with the bot, and of channels and threads those in which it takes part.
"""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import anyio
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.read_positions import MarksSnapshot
from gateway.adapters.slack.connection import ERRORS, code_of, fetch_messages, retry_after_of

log = logging.getLogger(__name__)

MOST = 200  # messages a place
MOST_PLACES = 100
LONGEST_SILENCE = 60.0

Event: TypeAlias = Mapping[str, Any]


class SlackHistory:
    """Reads what is behind the marks. A place that Slack refuses to show is passed over; an error that may pass is
    raised, or what stands there would never be read."""

    def __init__(self, web: AsyncWebClient) -> None:
        self._web = web

    async def messages(self, since: MarksSnapshot) -> AsyncIterator[Event]:
        """As events, in the order of each place."""
        if not since.time:
            return
        for channel in await self._own_chats(since):
            async for event in self._history(channel, max(since.at(channel), since.time), channel_type="im"):
                yield event
        others = [one for one in since.marks.values() if one.inside or not one.person]
        for mark in sorted(others, key=lambda one: -one.at)[:MOST_PLACES]:
            async for event in self._history(mark.chat, max(mark.at, since.time), mark.inside):
                yield event

    async def _own_chats(self, since: MarksSnapshot) -> list[str]:
        """Those that we know, the liveliest first, and what Slack lists: it may have more than it lists at once."""
        chats = [one.chat for one in since.chats()[:MOST_PLACES]]
        with ERRORS.logged(log.warning, "people's own chats with the bot cannot be listed", is_refused=True):
            answer = await self._patiently(lambda: self._web.conversations_list(types="im", limit=MOST_PLACES))
            chats += [str(one["id"]) for one in answer["channels"]]
        return [*dict.fromkeys(chats)]

    async def _history(self, channel: str, after: float, thread: str = "", **more: str) -> AsyncIterator[Event]:
        found: list[Event] = []
        page = partial(fetch_messages, self._web, channel, thread, oldest=f"{after:.6f}", limit=MOST)
        with ERRORS.logged(log.info, "what was said in %s cannot be read", channel, is_refused=True):
            found = [one for one in await self._patiently(page) if isinstance(one, dict)]
        if len(found) >= MOST:
            log.warning("in %s more was said than is read again; %d messages were", channel, MOST)
        for message in sorted(found, key=stamp_of):
            if stamp_of(message) > after:
                yield {**message, **more, "channel": channel}

    async def _patiently(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """A call, made again as often as Slack wants silence first."""
        while True:
            try:
                return await call()
            except SlackApiError as error:
                if code_of(error) != "ratelimited":
                    raise
                await anyio.sleep(min(retry_after_of(error), LONGEST_SILENCE))


def stamp_of(message: Event) -> float:
    """When it was said; what has no such time comes last, and is left to its reader."""
    try:
        return float(message["ts"])
    except (LookupError, TypeError, ValueError):
        return math.inf
