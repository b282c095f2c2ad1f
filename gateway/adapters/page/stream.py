"""The updates of the page's chat, as they come: messages from the journal, without gap or duplicate, and live text.

Messages have the journal's own numbers, so a page that lost its connection sends the last number, and gets all later
messages, over restarts too. The answer in progress and the state of work are live; a page that connects in the middle
gets both from the start.
"""

from collections import deque
from collections.abc import AsyncGenerator, Iterator
from typing import Any, NamedTuple

import anyio
import msgspec

from gateway.adapters.page.places import PLATFORM, address_of, key_of, subject_of, thread_of_key
from gateway.adapters.shared.incoming import remember
from gateway.engine.interface import Engine, Record
from gateway.lanes.lanes import Lanes
from gateway.messages.message import Address, Attachment, Message, Reply
from gateway.records import records, subjects
from gateway.sessions.search import SessionSearch

MOST_SHOWN = 200  # messages of the past at first; the page can ask for more
MOST_LISTED = 100  # sessions of one person
LONGEST_TITLE = 60
MOST_CHATS = 2000  # chats whose live part is kept
LONGEST_LIVE = 2_000_000  # characters of an answer in progress


class ChatUpdate(NamedTuple):
    """An update to show. `number` is the journal's for a message, 0 for live text."""

    number: int
    kind: str
    data: Any


class LiveChat(msgspec.Struct, eq=False):
    """One chat's answer in progress. `news` is set at every change."""

    news: anyio.Event = msgspec.field(default_factory=anyio.Event)
    turn_id: str = ""
    text: str = ""
    version: int = 0  # changes whenever the text begins again
    _ended: str = ""  # the turn that ended last

    def note(self, record: Record) -> None:
        if record.seq == 0:
            self._go_on(msgspec.json.decode(record.data))
        elif isinstance(end := records.decode_readable(record.data), records.TurnEnded):
            self._ended = end.turn_id
            self._begin("")
        self.tell()

    def tell(self) -> None:
        self.news.set()
        self.news = anyio.Event()

    def _go_on(self, piece: dict[str, Any]) -> None:
        if piece["turn_id"] == self._ended:
            return  # a late piece: the answer is complete
        if piece["turn_id"] != self.turn_id or piece.get("void"):
            self._begin(piece["turn_id"])
        self.text = (self.text + piece["text"])[:LONGEST_LIVE]

    def _begin(self, turn_id: str) -> None:
        self.turn_id, self.text = turn_id, ""
        self.version += 1


class ChatStream(msgspec.Struct, eq=False):
    """The stream of updates to open pages. `run` reads the journal for them; it begins with the first page."""

    _engine: Engine
    _lanes: Lanes
    _search: SessionSearch
    _chats: dict[str, LiveChat] = {}  # by the token of the session key
    _begun: anyio.Event = msgspec.field(default_factory=anyio.Event)

    async def run(self) -> None:
        """Follow the journal for the open chats, until cancelled."""
        await self._begun.wait()
        patterns = (subjects.PAGE_SUBJECTS, subjects.TURN_SUBJECTS, subjects.DELTA_SUBJECTS)
        heard = await self._engine.tail(*patterns)
        for known in self._chats.values():
            known.tell()
        async for record in heard:
            if chat := self._chats.get(subjects.token_of_subject(record.subject)):
                chat.note(record)

    def attend(self, address: Address) -> LiveChat:
        """Keep the live part of this chat from now on."""
        token = subjects.token_of(key_of(address))
        chat = self._chats.get(token) or LiveChat()
        remember(self._chats, token, chat, MOST_CHATS)
        self._begun.set()
        return chat

    async def follow(self, address: Address, seen: int = 0) -> AsyncGenerator[list[ChatUpdate], None]:
        """Yield the updates behind the number `seen`, or the latest messages and then new updates.

        Never ends by itself.
        """
        chat, subject, state, version, told = self.attend(address), subject_of(address), "", -1, 0
        if not seen:
            past = await self.read_past(address)
            yield [*past, ChatUpdate(0, "ready", {"more": len(past) == MOST_SHOWN})]
            seen = past[-1].number if past else 0
        while True:
            news, found = chat.news, list[ChatUpdate]()
            async for record, kept in records.read_all(self._engine, subject, records.ShownMessage, seen):
                found += describe_shown(record, kept)
                seen = record.seq
            if (now := await self._find_state(address)) != state:
                state = now
                found.append(ChatUpdate(0, "state", state))
            if (chat.version, len(chat.text)) != (version, told):
                told = told if chat.version == version else 0
                version, piece = chat.version, chat.text[told:]
                if chat.turn_id:
                    found.append(ChatUpdate(0, "piece", {"turn": chat.turn_id, "at": told, "text": piece}))
                told = len(chat.text)
            if found:
                yield found
            else:
                await news.wait()

    async def list_chats(self, person: str) -> list[dict[str, str]]:
        """List a person's sessions on the page, the most recent first."""
        found = await self._search.list_sessions(platform=PLATFORM, user_id=person, limit=MOST_LISTED)
        chats = [(thread_of_key(one.session_key, person), one) for one in found]
        return [
            {"thread": thread, "title": one.title or await self._find_title(address_of(person, thread))}
            for thread, one in chats
            if thread is not None and one.is_current
        ]

    async def _find_title(self, address: Address) -> str:
        """Return the beginning of the session's first message."""
        for record in await records.read_readable(self._engine, subject_of(address), 0, 1):
            kept = records.decode_readable(record.data)
            if isinstance(kept, records.ShownMessage) and (said := kept.message or kept.reply):
                return " ".join(said.text.split())[:LONGEST_TITLE]
        return ""

    async def read_past(self, address: Address, before: int = records.NEWEST) -> list[ChatUpdate]:
        """Return the last messages before a number, the oldest first."""
        found = deque[ChatUpdate](maxlen=MOST_SHOWN)
        async for record, kept in records.read_all(self._engine, subject_of(address), records.ShownMessage):
            if record.seq >= before:
                break
            found += describe_shown(record, kept)
        return list(found)

    async def find_shown(self, address: Address, number: str) -> Message | Reply | None:
        """Return the last version of the message with this id."""
        found = None
        async for _, kept in records.read_all(self._engine, subject_of(address), records.ShownMessage):
            one = kept.message or kept.reply
            found = one if one and one.id == number else found
        return found

    async def _find_state(self, address: Address) -> str:
        """Return the state of the answer: `running`, `waiting` for the person, `queued` for its time, or `idle`."""
        standing = await self._lanes.queue_position(key_of(address))
        if standing.is_waiting:
            return "waiting"
        return "running" if standing.is_running else "queued" if standing.messages else "idle"


def describe_shown(record: Record, kept: records.ShownMessage) -> Iterator[ChatUpdate]:
    """Describe a record for the page, which must not learn the path of a file."""
    if (said := kept.message or kept.reply) is None:
        return
    data: dict[str, Any] = {
        "by": "agent" if isinstance(said, Reply) else "person",
        "id": said.id,
        "text": said.text,
        "files": describe_files(said.attachments),
    }
    if isinstance(said, Reply):
        data["literals"] = [{"words": one.words, "text": one.text} for one in said.literals]
        data["buttons"] = [{"label": one.label, "value": one.value} for one in said.buttons]
        data["reply_to"] = said.reply_to
    yield ChatUpdate(record.seq, "shown", data | {"at": kept.at or record.ts})


def describe_files(files: tuple[Attachment, ...]) -> list[dict[str, Any]]:
    return [{"kind": one.kind, "name": one.name, "type": one.media_type, "size": one.size} for one in files]
