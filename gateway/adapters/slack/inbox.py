"""Messages that were read, into the journal: in their order in a channel, each once, with its files and its mark.

When `take` returns, Slack may be told that we have the event; when it raises, Slack delivers it again.
"""

import dataclasses
from collections import OrderedDict

from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared import AdapterContext
from gateway.adapters.shared.keyed_lock import KeyedLock
from gateway.adapters.shared.read_marks import ReadMark, ReadMarks
from gateway.adapters.shared.recent_messages import RecentMessages
from gateway.adapters.slack.connection import PLATFORM
from gateway.adapters.slack.files import fetch_file
from gateway.adapters.slack.reader import SlackIncoming
from gateway.adapters.slack.working_indicator import WorkingIndicator
from gateway.messages import Message

MOST_TAKEN = 10_000  # ids of messages that are known to be taken


class SlackInbox:
    """Takes the messages of one bot. Nothing of a stranger's is written or fetched."""

    def __init__(
        self,
        web: AsyncWebClient,
        ground: AdapterContext,
        marks: ReadMarks,
        recent: RecentMessages,
        sign: WorkingIndicator,
        bot: str,
    ) -> None:
        self._web = web
        self._ground = ground
        self._marks = marks
        self._recent = recent
        self._sign = sign
        self._bot = bot
        self._order = KeyedLock()
        self._taken: OrderedDict[tuple[str, str], None] = OrderedDict()

    @property
    def is_idle(self) -> bool:
        return not len(self._order)

    async def take(self, arrival: SlackIncoming) -> None:
        """When this returns, the message is in the journal, or settled.

        Raises:
            EngineError: the journal takes nothing now.
        """
        message = arrival.message
        identity = (message.address.chat_id, message.id)
        async with self._order.turn(message.address.chat_id):
            if identity in self._taken:
                return
            await self._accept(arrival)
            self._taken[identity] = None
            if len(self._taken) > MOST_TAKEN:
                self._taken.popitem(last=False)

    async def _accept(self, arrival: SlackIncoming) -> None:
        message = arrival.message
        if self._ground.access.scope(message) is None:
            await self._ground.receive(message, bot=self._bot)
            return
        stamp = message.id.partition(":")[0]
        self._recent.note(stamp, message.user_id, message.text)
        self._sign.heard(message.address.chat_id, message.address.thread_id, stamp)
        if arrival.files:
            message = await self._with_files(arrival)
        marks = self._marks_of(message) if message.kind != "edit" else []
        receipt = await self._ground.receive(message, *(self._marks.put(one) for one in marks), bot=self._bot)
        for mark in marks:
            await (self._marks.moved(mark) if receipt.settled is None else self._marks.move(mark))

    def _marks_of(self, message: Message) -> list[ReadMark]:
        """The place where it stands; a message that begins a thread stands in the channel, and opens the thread."""
        at, stamp = message.address, float(message.id)
        person = message.user_id if at.chat_type == "dm" else ""
        places = [""] if not at.thread_id else ["", at.thread_id] if at.thread_id == message.id else [at.thread_id]
        return [
            ReadMark(at.chat_id, max(stamp, self._marks.at(at.chat_id, inside)), person, inside) for inside in places
        ]

    async def _with_files(self, arrival: SlackIncoming) -> Message:
        """The message with its files; what could not be fetched is told in the text."""
        got = [await fetch_file(self._web, file, self._ground.files / PLATFORM) for file in arrival.files]
        failed = [one for one in got if isinstance(one, str)]
        attachments = tuple(one for one in got if not isinstance(one, str))
        text = "\n".join([*([arrival.message.text] if arrival.message.text else []), *failed])
        return dataclasses.replace(arrival.message, text=text, attachments=attachments)
