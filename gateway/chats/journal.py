"""The settings of chats by admins: one record for each chat or thread; the last one counts."""

from collections.abc import Mapping

import anyio
import msgspec

from gateway.engine.interface import Engine, NewRecord, Record
from gateway.errors import Conflict, SessionError
from gateway.messages.message import Address
from gateway.records import records, subjects


class ChatJournal(msgspec.Struct, eq=False):
    """Keeps the settings. Call `load` before any look-up, and after others may have changed them."""

    patterns = (subjects.CHAT_SUBJECTS,)

    _engine: Engine
    _seqs: dict[str, int] = {}
    chats: dict[str, Mapping[str, str]] = {}  # values by rule, for `telegram:-2001` or `telegram:-2001:7`
    changes: int = 0  # the number of changes
    news: anyio.Event = msgspec.field(default_factory=anyio.Event)  # set at each change, and then replaced

    async def load(self) -> None:
        before, found = dict(self._seqs), set[str]()
        async for record, kept in records.read_all(self._engine, subjects.CHAT_SUBJECTS, records.ChatRuleRecord):
            found.add(kept.chat)
            self._note(record.seq, kept)
        for chat in before.keys() - found:
            if self._seqs[chat] == before[chat]:
                del self.chats[chat], self._seqs[chat]
                self.changes += 1

    async def take(self, record: Record) -> None:
        kept = records.decode(record.data)
        if isinstance(kept, records.ChatRuleRecord):
            self._note(record.seq, kept)

    def _note(self, seq: int, kept: records.ChatRuleRecord) -> None:
        if seq > self._seqs.get(kept.chat, 0):
            self.chats[kept.chat], self._seqs[kept.chat] = kept.values, seq
            self.changes += 1
            self.news.set()
            self.news = anyio.Event()

    async def write(self, chat: str, values: Mapping[str, str], person: str = "") -> None:
        """Write the settings of a chat; empty ones remove them. `person` is the person of a direct chat.

        Raises:
            SessionError: another admin changed them at the same moment.
        """
        subject = subjects.chat_subject_of(chat)
        kept = records.ChatRuleRecord(chat=chat, values=dict(values), person=person)
        put = NewRecord(subject, records.encode(kept), expect=self._seqs.get(chat, 0))
        try:
            (seq,) = await self._engine.append(put)
        except Conflict:
            await self.load()
            raise SessionError("someone else made a change at the same moment; try again") from None
        self._note(seq, kept)
        await self._engine.purge(subject, seq - 1)


def list_keys(address: Address) -> list[str]:
    """List the names of a place: the thread's, if it is one, then the chat's."""
    chat = f"{address.served_as}:{address.chat_id}"
    return [*([f"{chat}:{address.thread_id}"] if address.thread_id else []), chat]
