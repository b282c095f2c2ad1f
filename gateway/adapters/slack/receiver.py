"""The receiver of Slack's events, by Bolt: each listener returns once its event is in the journal or settled.

Bolt acknowledges after its listeners here (`process_before_response`), and not at all when one fails; so Slack delivers
again an event that we do not have. Events without use are acknowledged too, or they would come again and again.
"""

import logging
import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeAlias

import msgspec
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.adapter import AdapterContext, Presence
from gateway.adapters.shared.inbox import Inbox
from gateway.adapters.shared.incoming import check_message, make_reaction
from gateway.adapters.shared.read_positions import MarksSnapshot, ReadMarks
from gateway.adapters.slack.connection import PLATFORM
from gateway.adapters.slack.emoji import emoji_of
from gateway.adapters.slack.history import SlackHistory
from gateway.adapters.slack.interactions import SlackInteractions
from gateway.adapters.slack.reader import Event, SlackReader, address_of
from gateway.adapters.slack.threads import SlackThreads
from gateway.errors import GatewayError
from gateway.messages.message import Address, Message

log = logging.getLogger(__name__)

EVERY = re.compile(".*", re.DOTALL)

Body: TypeAlias = Mapping[str, Any]


class SlackReceiver(msgspec.Struct, eq=False):
    """The receiver of one bot's events."""

    context: AdapterContext
    presence: Presence
    reader: SlackReader
    inbox: Inbox[Event]
    presses: SlackInteractions
    threads: SlackThreads

    def listen(self, app: AsyncApp) -> None:
        """Register listeners for all of Bolt's events."""
        app.event(EVERY)(self._event)
        app.command(EVERY)(self._command)
        app.action(EVERY)(self._action)
        app.error(self._fail)

    async def read_again(self, web: AsyncWebClient, marks: ReadMarks, since: MarksSnapshot) -> None:
        """Read the missed messages; new ones wait for that, but not for places whose requests failed."""
        begun, history = time.time(), SlackHistory(web)
        with self.inbox.reading():
            gone = await self._take_all(history.messages(since))
            self.inbox.is_caught_up.set()
            for event in gone:
                await self._delete(event)
            for event in await self._take_all(history.rest()):
                await self._delete(event)
            await marks.note_alive(begun)

    async def _take_all(self, found: AsyncIterator[Event]) -> list[Event]:
        """Take messages, and return the deletions: these are done once the messages are in the journal."""
        gone: list[Event] = []
        async for event in found:
            with self.presence.skipping("message", lambda: event):  # noqa: B023 - asked within the loop
                if self.reader.read_deleted(event):
                    gone.append(event)
                else:
                    await self._take(event, is_new=False)
        return gone

    async def _event(self, body: Body) -> None:
        event = body["event"]
        self.presence.received()
        if await self._delete(event):
            return
        if event["type"] in ("message", "app_mention"):
            await self._take(event, is_new=True)
        elif event["type"] in ("reaction_added", "reaction_removed"):
            await self._react(event)
        elif event["type"] == "app_home_opened" and event.get("tab") == "messages":
            self._open(event["user"], event["channel"])
        elif event["type"] == "assistant_thread_started":
            thread = event["assistant_thread"]
            self._open(thread["user_id"], thread["channel_id"], thread["thread_ts"])

    def _open(self, user: object, channel: object, thread: object = "") -> None:
        """Begin a conversation when a person opens the app, or a thread in the older view.

        Strangers get no suggestions.
        """
        address = Address(PLATFORM, str(channel), "dm", str(thread), self.context.served_as.partition(":")[2])
        if self.context.parts.access.find_role(Message("", address, str(user), "")) is not None:
            self.threads.begin(address)

    async def _take(self, event: Event, *, is_new: bool) -> None:
        if (arrival := self.reader.read(event)) is not None:
            check_message(arrival.message)
            if is_new:
                await self.inbox.is_caught_up.wait()
            await self.inbox.take(arrival, arrival.message.address.chat_id)

    async def _delete(self, event: Event) -> bool:
        """Delete the message that an event takes back; return False for any other event."""
        if (gone := self.reader.read_deleted(event)) is None:
            return False
        name, by = gone
        await self.inbox.delete(name, name.chat, by)
        return True

    async def _command(self, body: Body, ack: AsyncAck) -> None:
        self.presence.received()
        answer = await self.presses.called(body)
        await (ack(answer) if answer else ack())

    async def _action(self, body: Body, ack: AsyncAck) -> None:
        self.presence.received()
        await self.presses.pressed(body)
        await ack()

    async def _fail(self, error: Exception, body: Body) -> BoltResponse:
        """Answer a failure:

        Slack keeps an event that we could not store; an unreadable one is skipped, and acknowledged.
        """
        if isinstance(error, GatewayError | OSError):
            log.warning("an event is left to Slack: %s", error)
            return BoltResponse(status=500, body="")
        self.presence.skip("event", lambda: body, error)
        return BoltResponse(status=200, body="")

    async def _react(self, event: Mapping[str, Any]) -> None:
        item = event.get("item") or {}
        if item.get("type") != "message" or event.get("user") == self.reader.me.user:
            return
        emoji = [emoji_of(str(event["reaction"]))]
        change = {"added": emoji} if event["type"] == "reaction_added" else {"removed": emoji}
        await self.context.receive(make_reaction(address_of(item), str(event["user"]), str(item["ts"]), **change))
