"""The way of messages into the journal: in their order in a channel, each once, with its files and its marks."""

import dataclasses
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeAlias

import anyio
import msgspec

from gateway.adapters.shared.adapter import AdapterContext, Presence
from gateway.adapters.shared.incoming import FileT, IncomingMessage, remember
from gateway.adapters.shared.read_positions import ReadMark, ReadMarks
from gateway.engine.interface import NewRecord, append_until_written
from gateway.errors import EngineError
from gateway.messages.message import Attachment, Message
from gateway.messages.pieces import MessageName

MOST_TAKEN = 1000  # ids of taken messages that are remembered; the journal knows all of them
MAX_RAW = 32_000  # bytes of a network's own form of one message

FetchFile: TypeAlias = Callable[[FileT, Path], Awaitable[Attachment | str]]
"""Downloads a file to a folder; returns it, or the reason why it is missing, in words."""

AddNames: TypeAlias = Callable[[Message], Awaitable[Message]]


class KeyedLock(msgspec.Struct, eq=False):
    """The locks by key, in the order of requests; keys do not wait for each other, and an unused key is forgotten."""

    _locks: dict[str, tuple[anyio.Lock, int]] = {}

    def __len__(self) -> int:
        return len(self._locks)

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        """Hold the key's lock inside the block."""
        lock, waiting = self._locks.get(key, (None, 0))
        lock = lock or anyio.Lock()
        self._locks[key] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            _, waiting = self._locks.pop(key)
            if waiting > 1:
                self._locks[key] = (lock, waiting - 1)


class Inbox(msgspec.Struct, Generic[FileT], eq=False):
    """The intake of one bot's messages. A stranger's messages and files are neither stored nor downloaded.

    `note` is called with each message of a person with access, before its files are downloaded. `threads_of` returns
    the places in the channel whose marks a message moves; `""` is the channel itself. `add_names` asks the network for
    names that a message came without. `is_caught_up` is set once the messages of a time without connection have been
    read.
    """

    _context: AdapterContext
    _bot: str
    _marks: ReadMarks
    _note: Callable[[Message], None]
    _fetch: FetchFile[FileT]
    _threads_of: Callable[[Message], Sequence[str]] = lambda _message: ("",)
    _add_names: AddNames | None = None
    is_caught_up: anyio.Event = msgspec.field(default_factory=anyio.Event)
    _readings: int = 0  # readings of earlier messages that new ones do not wait for
    is_told: bool = True  # False while the connection is broken: then new messages are not received
    _order: KeyedLock = msgspec.field(default_factory=KeyedLock)
    _taken: dict[tuple[str, str], None] = {}

    @property
    def is_reading(self) -> bool:
        return self._readings > 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count a reading of earlier messages inside the block; several may go on at a time."""
        self._readings += 1
        try:
            yield
        finally:
            self._readings -= 1

    async def note_alive(self, presence: Presence, pause: float) -> None:
        """Note regularly, until cancelled, up to when all messages were taken; those need not be read again."""
        while True:
            await anyio.sleep(pause)
            if self.is_caught_up.is_set() and self.is_told and not self.is_reading and not len(self._order):
                with suppress(EngineError):  # on a failure, more messages are read again later
                    await self._marks.note_alive(presence.facts.last_probe)

    async def take(self, incoming: IncomingMessage[FileT], channel: str) -> None:
        """Take a message; after that it is in the journal, or settled.

        Raises:
            EngineError: the journal takes no appends now.
        """
        identity = (channel, incoming.message.id)
        async with self._order.hold(channel):
            if incoming.message.is_overheard:  # it moves no mark
                await self._context.receive(incoming.message, bot=self._bot, complete=self._name)
                return
            if identity in self._taken:
                return
            await self._receive(incoming, channel)
            remember(self._taken, identity, None, MOST_TAKEN)

    async def delete(self, name: MessageName, channel: str, by: str = "") -> None:
        """Delete a message that its author took back, after the earlier messages of the channel."""
        await self.is_caught_up.wait()
        async with self._order.hold(channel):
            await append_until_written(partial(self._context.delete, name, by), "what was taken back")

    async def _name(self, message: Message) -> tuple[Message, tuple[()]]:
        return await self._add_names(message) if self._add_names else message, ()

    async def _receive(self, incoming: IncomingMessage[FileT], channel: str) -> None:
        marks = [] if incoming.message.kind == "edit" else self._marks_of(incoming.message, channel)

        async def complete(message: Message) -> tuple[Message, list[NewRecord]]:
            self._note(message)
            message = await self._add_names(message) if self._add_names else message
            message = add_network_message(message, incoming, self._context)
            message = await add_files(message, incoming, self._fetch, self._context)
            return message, [self._marks.put(mark) for mark in marks]

        receipt = await self._context.receive(incoming.message, bot=self._bot, complete=complete)
        if receipt.decision != "stranger":
            for mark in marks:
                await (self._marks.note_moved(mark) if receipt.settled is None else self._marks.move(mark))

    def _marks_of(self, message: Message, channel: str) -> list[ReadMark]:
        number = int(message.id) if message.id.isdecimal() else float(message.id)
        person = message.user_id if message.address.chat_type == "dm" else ""
        return [
            ReadMark(channel, max(number, self._marks.at(channel, thread)), person, thread)
            for thread in self._threads_of(message)
        ]


def add_network_message(message: Message, incoming: IncomingMessage[Any], context: AdapterContext) -> Message:
    """Add the network's own form of the message, if a hook wants it; a very long one is left out."""
    if incoming.raw is None or not context.parts.registry.wants("message:received"):
        return message
    raw: Any = None
    try:
        raw = incoming.raw()
        is_kept = len(msgspec.json.encode(raw)) <= MAX_RAW
    except Exception:  # noqa: BLE001 - a library's object describes itself, or does not
        is_kept = False
    return dataclasses.replace(message, extra={**message.extra, "raw": raw}) if is_kept else message


async def add_files(
    message: Message, incoming: IncomingMessage[FileT], fetch: FetchFile[FileT], context: AdapterContext
) -> Message:
    """Add the files of a message, in the folder of its conversation; the text names those that could not be downloaded.

    They age by the journal's clock, like their message; all gateways have them before they have the message.
    """
    folder = message.address.find_folder(context.files, message.user_id)
    got, now = [await fetch(file, folder) for file in incoming.files], context.parts.engine.clock.latest()
    found = (*incoming.quoted, *(await incoming.find_quoted() if incoming.find_quoted else ()))
    quoted = [await fetch(file, folder) for file in found]
    got += [dataclasses.replace(one, is_quoted=True) if isinstance(one, Attachment) else one for one in quoted]
    failed = [one for one in got if isinstance(one, str)]
    attachments = tuple(one for one in got if not isinstance(one, str))
    for one in attachments:
        with suppress(OSError):
            os.utime(one.path, (now, now))
            await context.parts.files.shared.put(Path(one.path))
    text = "\n".join([*([message.text] if message.text else []), *failed])
    return dataclasses.replace(message, text=text, attachments=attachments)
