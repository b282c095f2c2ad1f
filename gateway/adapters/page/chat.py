"""The actions of a person in the page's chat: write, edit, press a button, send a file.

Each is a message like that of any network. It passes the same access control, and is in the journal before the page
gets its receipt. Under the page's id it is the same message, however often a lost connection makes the page send it.
"""

import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from gateway.adapters.page.places import MESSAGE_ID, PLATFORM, THREAD, address_of
from gateway.adapters.page.transport import make_message_put
from gateway.adapters.shared.adapter import AdapterContext
from gateway.adapters.shared.files import file_name_of, write_pieces
from gateway.adapters.shared.inbox import KeyedLock
from gateway.adapters.shared.incoming import STRANGER, remember
from gateway.dispatcher.attachments import display_name_of
from gateway.dispatcher.chat_commands import find_command
from gateway.dispatcher.commands import Command, parse_command
from gateway.dispatcher.message_pace import TOO_FAST
from gateway.engine.failure_watch import FailureWatch
from gateway.engine.interface import NewRecord
from gateway.errors import AdapterError, Duplicate
from gateway.files.folders import RECEIVED_NAME
from gateway.messages.message import Attachment, Message, MessageKind, Receipt, kind_of
from gateway.messages.roles import Role
from gateway.threads import run_in_thread

LARGEST_FILE = 25_000_000
LARGEST_TEXT = 1_000_000  # characters
MOST_KEPT = 1_000_000_000  # bytes of files that one person may have here
MOST_KEPT_FILES = 2000
TOO_MUCH = (
    "you have {count} files with {size:.0f} MB here already, and one person may have no more; each goes 14 days after "
    "it came, and sooner with its conversation, which an admin can delete"
)
TOO_FAST_PAUSE = 60.0
MOST_FILES = 10
MOST_TAKEN = 10_000  # ids of messages whose receipts are kept
ANY_TYPE = "application/octet-stream"
MEDIA_TYPE = r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}"

MessageId = Annotated[str, Meta(pattern=rf"^{MESSAGE_ID}\Z")]
Thread = Annotated[str, Meta(pattern=rf"^({THREAD.pattern})?\Z")]


class SentFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that was uploaded before: `file` is its name here, `name` the person's name for it."""

    file: Annotated[str, Meta(pattern=rf"^{RECEIVED_NAME.pattern}\Z")]
    name: Annotated[str, Meta(max_length=1000)] = ""
    type: Annotated[str, Meta(pattern=rf"^({MEDIA_TYPE})?\Z")] = ""


class PageMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """A message that a person writes. `edits` is the id of an earlier message that it replaces."""

    id: MessageId
    text: Annotated[str, Meta(max_length=LARGEST_TEXT)] = ""
    thread: Thread = ""
    files: Annotated[tuple[SentFile, ...], Meta(max_length=MOST_FILES)] = ()
    edits: Annotated[str, Meta(pattern=rf"^({MESSAGE_ID})?\Z")] = ""


class ButtonPress(Struct, frozen=True, forbid_unknown_fields=True):
    """A press of a button under a reply of ours."""

    id: MessageId
    reply: Annotated[str, Meta(max_length=1000)]
    value: Annotated[str, Meta(max_length=1000)]
    thread: Thread = ""


class FileRefused(AdapterError):
    """The limit on a person's files is reached."""


class PageChat:
    """The intake of people's actions; the port has authenticated these people."""

    def __init__(self, context: AdapterContext) -> None:
        self.files = context.parts.files.shared
        self._context = context
        self._failure = FailureWatch(context.parts.engine)
        self._order = KeyedLock()
        self._taken: dict[tuple[str, str], Receipt] = {}
        self._arriving: Counter[str] = Counter()  # uploads that are in progress, by person

    def find_role(self, person: str) -> Role | None:
        """Return the role of a person in the page's chat; None: the person has no access."""
        return self._context.parts.access.find_role(self._message_of(person, "", "", ""))

    def list_commands(self, person: str) -> list[Command]:
        """List the commands that the person may use."""
        role = self.find_role(person)
        found = [one for one in self._context.parts.commands.values() if not one.hidden]
        return [one for one in found if role and find_command(self._context.parts, one.name, role)]

    async def say(self, person: str, said: PageMessage) -> Receipt:
        """Take a message; raises GatewayError with the reason if that fails now.

        An EngineError or an AdapterError is one of those.
        """
        files = await self._find_files(person, said.files)
        if not said.text.strip() and not files:
            raise AdapterError("this message is empty", permanent=True)
        kind: MessageKind = "edit" if said.edits else "command" if said.text.startswith("/") else "text"
        number = f"{said.edits}:edit-{said.id}" if said.edits else said.id
        return await self._take(self._message_of(person, said.thread, number, said.text, kind=kind, attachments=files))

    async def press(self, person: str, pressed: ButtonPress) -> Receipt:
        """Take a press; raises GatewayError with the reason if that fails now."""
        about: dict[str, Any] = {"kind": "button", "reply_to": pressed.reply}
        return await self._take(self._message_of(person, pressed.thread, pressed.id, pressed.value, **about))

    async def keep_file(
        self, person: str, number: str, name: str, media_type: str, pieces: AsyncIterator[bytes]
    ) -> Attachment:
        """Store a file in the person's own folder, under a name of ours; a repeated upload under one id is one file.

        Raises:
            AdapterError: the file cannot be kept, or the person may not send it; an upload counts as a message.
            FileRefused: the person has too many files here.
        """
        message, access = self._message_of(person, "", number, ""), self._context.parts.access
        role = access.find_role(message)
        if role is None:
            raise AdapterError(STRANGER, permanent=True)
        if access.is_too_fast(message, role):
            raise AdapterError(TOO_FAST, retry_after=TOO_FAST_PAUSE)
        name = display_name_of(name or "file")
        path = self._folder_of(person) / file_name_of(f"{PLATFORM}:{person}:{number}", name)
        try:
            with self._count_arrival(person):
                await self._check_room(person, path)
                async with self._order.hold(str(path)):
                    size = await write_pieces(path, pieces)
                    await self.files.put(path)
        except OSError as error:
            raise AdapterError(f"the file {name} cannot be kept: {error.strerror}", permanent=True) from None
        return Attachment(kind_of(media_type), str(path), name, media_type or ANY_TYPE, size)

    @contextmanager
    def _count_arrival(self, person: str) -> Iterator[None]:
        self._arriving[person] += 1
        try:
            yield
        finally:
            self._arriving[person] -= 1
            self._arriving += Counter()  # drops people without an upload

    async def _check_room(self, person: str, path: Path) -> None:
        """Check the person's limits; each upload in progress counts as the largest allowed file. Raises FileRefused."""
        kept = [size for name, size in (await self.files.list_received(path.parent)).items() if name != path.name]
        count, size, arriving = len(kept), sum(kept), self._arriving[person]
        if count + arriving > MOST_KEPT_FILES or size + arriving * LARGEST_FILE > MOST_KEPT:
            raise FileRefused(TOO_MUCH.format(size=size / 1e6, count=count), permanent=True)

    async def _find_files(self, person: str, sent: Sequence[SentFile]) -> tuple[Attachment, ...]:
        """Find uploaded files; raises AdapterError if one of them is missing."""
        folder = self._folder_of(person)
        places = [(Path(await self.files.find(str(folder / one.file))), one) for one in sent]
        return tuple([await run_in_thread(describe_file, place, one) for place, one in places])

    def _folder_of(self, person: str) -> Path:
        return address_of(person).find_folder(self._context.files, person)

    def _message_of(self, person: str, thread: str, number: str, text: str, **about: Any) -> Message:
        now = self._context.parts.engine.clock.latest()
        return Message(number, address_of(person, thread), person, text, user_name=person, sent_at=now, **about)

    async def _take(self, message: Message) -> Receipt:
        identity = (message.user_id, message.id)
        async with self._order.hold("\0".join(identity)):
            if known := self._taken.get(identity):
                return known
            with suppress(Duplicate):  # it was taken before a restart: it is in the journal
                with self._failure.watching():
                    receipt = await self._context.receive(message, complete=self._complete)
                remember(self._taken, identity, receipt, MOST_TAKEN)
                return receipt
            return Receipt("")

    async def _complete(self, message: Message) -> tuple[Message, list[NewRecord]]:
        """Add the record that shows the message; for a command that acts at once, write that record first."""
        if message.kind == "button":
            return message, []
        parts, now = self._context.parts, self._context.parts.engine.clock.latest()
        for one in message.attachments:
            with suppress(OSError):
                os.utime(one.path, (now, now))  # they age by the journal's clock, like their message
        shown, typed, role = make_message_put(message), parse_command(message.text), parts.access.find_role(message)
        command = find_command(parts, typed.word, role) if typed and role else None
        if command is None or not command.urgent:
            return message, [shown]
        with suppress(Duplicate):
            await parts.engine.append(shown)
        return message, []


def describe_file(path: Path, sent: SentFile) -> Attachment:
    """Describe an uploaded file in the person's folder; only our own name identifies it.

    Raises:
        AdapterError: the file is not there.
    """
    name = display_name_of(sent.name) or "file"
    if path.is_symlink() or not path.is_file():
        raise AdapterError(f"the file {name} is no longer here; send it again", permanent=True)
    media_type = sent.type or ANY_TYPE
    return Attachment(kind_of(media_type), str(path), name, media_type, path.stat().st_size)
