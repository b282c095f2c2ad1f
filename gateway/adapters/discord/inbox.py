"""Messages that were read, into the journal: in their order in a channel, each once, with its files and its mark."""

import dataclasses
from collections import OrderedDict

import discord

from gateway import messages
from gateway.adapters.discord.connection import PLATFORM
from gateway.adapters.discord.files import fetch_file
from gateway.adapters.discord.reader import DiscordIncoming
from gateway.adapters.shared import AdapterContext
from gateway.adapters.shared.keyed_lock import KeyedLock
from gateway.adapters.shared.read_marks import ReadMark, ReadMarks
from gateway.adapters.shared.recent_messages import RecentMessages

MOST_TAKEN = 10_000  # ids of messages that are known to be taken


class DiscordInbox:
    """Takes the messages of one bot. Nothing of a stranger's is written or fetched."""

    def __init__(self, ground: AdapterContext, marks: ReadMarks, recent: RecentMessages, bot: str) -> None:
        self._ground = ground
        self._marks = marks
        self._recent = recent
        self._bot = bot
        self._order = KeyedLock()
        self._taken: OrderedDict[int, None] = OrderedDict()

    @property
    def is_idle(self) -> bool:
        return not len(self._order)

    async def take(self, message: discord.Message, arrival: DiscordIncoming) -> None:
        """When this returns, the message is in the journal, or settled.

        Raises:
            EngineError: the journal takes nothing now.
        """
        async with self._order.turn(str(message.channel.id)):
            is_edit = arrival.message.kind == "edit"
            if not is_edit and message.id in self._taken:
                return
            await self._accept(arrival, None if is_edit else self._mark(message))
            if not is_edit:
                self._remember(message.id)

    def _mark(self, message: discord.Message) -> ReadMark:
        is_chat = isinstance(message.channel, discord.DMChannel)
        chat = str(message.channel.id)
        person = str(message.author.id) if is_chat else ""
        return ReadMark(chat, max(message.id, self._marks.at(chat)), person)

    async def _accept(self, arrival: DiscordIncoming, mark: ReadMark | None) -> None:
        message = arrival.message
        if self._ground.access.scope(message) is None:
            await self._ground.receive(message, bot=self._bot)
            return
        self._recent.note(message.id.partition(":")[0], message.user_id, message.text)
        if arrival.files:
            message = await self._with_files(arrival)
        receipt = await self._ground.receive(message, *([self._marks.put(mark)] if mark else []), bot=self._bot)
        if mark is not None:
            await (self._marks.moved(mark) if receipt.settled is None else self._marks.move(mark))

    def _remember(self, number: int) -> None:
        self._taken[number] = None
        if len(self._taken) > MOST_TAKEN:
            self._taken.popitem(last=False)

    async def _with_files(self, arrival: DiscordIncoming) -> messages.Message:
        """The message with its files; what could not be fetched is told in the text."""
        got = [await fetch_file(file, self._ground.files / PLATFORM) for file in arrival.files]
        failed = [one for one in got if isinstance(one, str)]
        attachments = tuple(one for one in got if not isinstance(one, str))
        text = "\n".join([*([arrival.message.text] if arrival.message.text else []), *failed])
        return dataclasses.replace(arrival.message, text=text, attachments=attachments)
