"""The threads in which a person speaks with the app alone, in Slack's views of agents and of assistants.

The view of agents replaces that of assistants. The app sets the suggestions at the beginning, the title of the thread,
and the status while work goes on. For an app with neither view Slack refuses these calls, and they are not repeated.
None of them is worth an error, and no message waits for them.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

import anyio
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.incoming import remember
from gateway.adapters.slack.connection import ERRORS, as_adapter_error, code_of
from gateway.adapters.slack.streams import EVERYWHERE
from gateway.messages.message import Address, Message

log = logging.getLogger(__name__)

AT_WORK: Final = "is working on it..."
AT_WORK_PAUSE: Final = 60.0  # seconds; Slack hides the words after two minutes
LONGEST_TITLE: Final = 80
MOST, MOST_WAITING = 2000, 200

Place: TypeAlias = tuple[str, str]
PlaceCall: TypeAlias = Callable[[], Awaitable[object]]


class SlackThreads:
    """The threads of one app."""

    def __init__(self, web: AsyncWebClient, prompts: Sequence[str]) -> None:
        self._web = web
        self._prompts = [{"title": one, "message": one} for one in prompts]
        self._unnamed: dict[Place, None] = {}
        self._refused: dict[Place, None] = {}
        self._calls = deque[tuple[Place, PlaceCall]](maxlen=MOST_WAITING)
        self._news = anyio.Event()

    async def run(self) -> None:
        """Make the background calls, until cancelled."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            while self._calls:
                await self._try(*self._calls.popleft())

    def _put(self, place: Place, call: PlaceCall) -> None:
        self._calls.append((place, call))
        self._news.set()

    def begin(self, address: Address) -> None:
        """Offer suggestions when a person opens a thread, or the app itself.

        The app itself is opened in the view of agents, where Slack reports no thread.
        """
        channel, stamp = place = address.chat_id, address.thread_id
        if stamp:
            remember(self._unnamed, place, None, MOST)
        if self._prompts:
            offer = partial(self._web.assistant_threads_setSuggestedPrompts, prompts=self._prompts)
            self._put(place, partial(offer, channel_id=channel, thread_ts=stamp or None))

    def note(self, message: Message) -> None:
        """Name the thread after its first message."""
        channel, stamp = place = message.address.chat_id, message.address.thread_id
        title = " ".join(message.text.split())[:LONGEST_TITLE]
        if place in self._unnamed and title:
            del self._unnamed[place]
            name = partial(self._web.assistant_threads_setTitle, channel_id=channel, thread_ts=stamp, title=title)
            self._put(place, name)

    async def show_working(self, address: Address) -> None:
        await self._set_status(address, AT_WORK)

    async def hide_working(self, address: Address) -> None:
        await self._set_status(address, "")

    async def _set_status(self, address: Address, status: str) -> None:
        channel, stamp = place = address.chat_id, address.thread_id
        if address.chat_type == "dm" and stamp:
            set_status = self._web.assistant_threads_setStatus
            await self._try(place, partial(set_status, channel_id=channel, thread_ts=stamp, status=status))

    async def _try(self, place: Place, call: PlaceCall) -> None:
        """Make a call, unless Slack has refused it for good, there or everywhere."""
        if {place, ("", "")} & self._refused.keys():
            return
        with ERRORS.logged(log.debug, "nothing is said about the thread in %s", place[0]):
            try:
                await call()
            except SlackApiError as error:
                if as_adapter_error(error).permanent:
                    remember(self._refused, ("", "") if code_of(error) in EVERYWHERE else place, None, MOST)
                raise
