"""The messages of a time without a connection: Slack delivers them again for some minutes only, so the rest is read.

They are read oldest first, from direct chats, and from the channels and threads in which the bot takes part.
"""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import anyio
import msgspec
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.read_positions import MarksSnapshot
from gateway.adapters.slack.connection import ERRORS, code_of, fetch_messages, retry_after_of
from gateway.backoff import Attempts, Backoff
from gateway.errors import AdapterError

log = logging.getLogger(__name__)

MOST = 200  # messages a place
MOST_PLACES = 100
LONGEST_SILENCE = 60.0
ILL_BACKOFF = Backoff(1.0, 60.0)

Event: TypeAlias = Mapping[str, Any]


class SlackHistory(msgspec.Struct, eq=False):
    """The reader of messages behind the marks; it skips places that Slack refuses, and reads a failed one later."""

    _web: AsyncWebClient
    _later: list[Callable[[], AsyncIterator[Event]]] = []

    async def messages(self, since: MarksSnapshot) -> AsyncIterator[Event]:
        """Yield the missed messages as events, in the order of each place."""
        if not since.time:
            return
        own = [mark.chat for mark in since.chats()[:MOST_PLACES]]  # the most recent: Slack lists them in another order
        for channel in own:
            async for event in self._history(channel, max(since.at(channel), since.time), channel_type="im"):
                yield event
        async for event in self._listed_chats(since.time, own):
            yield event
        others = [one for one in since.marks.values() if one.inside or not one.person]
        for mark in sorted(others, key=lambda one: -one.at)[:MOST_PLACES]:
            async for event in self._history(mark.chat, max(mark.at, since.time), mark.inside):
                yield event

    async def rest(self) -> AsyncIterator[Event]:
        """Yield the messages of places whose requests failed, once Slack works again; nothing else waits for them."""
        attempts = Attempts(ILL_BACKOFF)
        while self._later:
            await anyio.sleep(attempts.pause())
            later, self._later = self._later, []
            for read in later:
                async for event in read():
                    yield event

    async def _listed_chats(self, after: float, known: Sequence[str]) -> AsyncIterator[Event]:
        """Yield the messages of direct chats without a mark, as far as Slack lists them."""
        ask = partial(self._web.conversations_list, types="im", limit=MOST_PLACES)
        answer = await self._ask(ask, "people's own chats", partial(self._listed_chats, after, known))
        for one in answer["channels"] if answer else ():
            if one["id"] not in known:
                async for event in self._history(str(one["id"]), after, channel_type="im"):
                    yield event

    async def _history(self, channel: str, after: float, thread: str = "", **more: str) -> AsyncIterator[Event]:
        page = partial(fetch_messages, self._web, channel, thread, oldest=f"{after:.6f}", limit=MOST)
        answer = await self._ask(page, channel, partial(self._history, channel, after, thread, **more))
        found = [one for one in answer or () if isinstance(one, dict)]
        if len(found) >= MOST:
            log.warning("in %s more was said than is read again; %d messages were", channel, MOST)
        for message in sorted(found, key=stamp_of):
            if stamp_of(message) > after:
                yield {**message, **more, "channel": channel}

    async def _ask(
        self, call: Callable[[], Awaitable[Any]], where: str, again: Callable[[], AsyncIterator[Event]]
    ) -> Any:
        """Return the answer; None if Slack refuses, or if the call is done `again` later."""
        try:
            with ERRORS.translated():
                return await self._patiently(call)
        except AdapterError as error:
            log.info("what was said in %s cannot be read%s: %s", where, "" if error.permanent else " now", error)
            if not error.permanent:
                self._later.append(again)
            return None

    async def _patiently(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Make a call, and repeat it as often as Slack demands a pause first."""
        while True:
            try:
                return await call()
            except SlackApiError as error:
                if code_of(error) != "ratelimited":
                    raise
                await anyio.sleep(min(retry_after_of(error), LONGEST_SILENCE))


def stamp_of(message: Event) -> float:
    """Return the time of a message; infinity for one without a valid time, so that it is sorted last."""
    try:
        return float(message["ts"])
    except (LookupError, TypeError, ValueError):
        return math.inf
