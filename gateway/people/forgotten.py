"""Somebody whom another gateway has forgotten goes from memory here too.

The journal says no name: only the pseudonym that remains of them, by which whoever knows them finds out who is meant.
"""

from gateway import record_subjects, records
from gateway.chats import ChatJournal, HeardMessages
from gateway.engine import Engine, NewRecord, Record
from gateway.errors import AccessError
from gateway.people.person import find_salt, make_pseudonym, parse_person
from gateway.usage import RunningTotals


class ForgottenPeople:
    """Tells other gateways, and hears what they tell."""

    patterns = (record_subjects.FORGOTTEN_SUBJECT,)

    def __init__(self, engine: Engine, totals: RunningTotals, heard: HeardMessages, chats: ChatJournal) -> None:
        self._engine = engine
        self._totals = totals
        self._heard = heard
        self._chats = chats

    async def load(self) -> None:
        async for _, kept in records.read_all(self._engine, self.patterns[0], records.PersonForgotten):
            await self._forget(kept.pseudonym)

    async def take(self, record: Record) -> None:
        kept = records.decode(record.data)
        if isinstance(kept, records.PersonForgotten):
            await self._forget(kept.pseudonym)

    async def tell(self, pseudonym: str) -> None:
        """What the journal held of them is gone."""
        kept = records.PersonForgotten(pseudonym=pseudonym)
        await self._engine.append(NewRecord(self.patterns[0], records.encode(kept), ttl=records.DAY))

    async def _forget(self, pseudonym: str) -> None:
        salt = await find_salt(self._engine)
        for name in self._totals.list_names() | self._heard.list_senders():
            try:
                person = parse_person(name)
            except AccessError:  # a sum of several
                continue
            if make_pseudonym(salt, person) == pseudonym:
                self._totals.rename([name], pseudonym)
                await self._heard.forget(name)
        await self._chats.load()  # what was set in their direct chats is gone
