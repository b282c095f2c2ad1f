"""What the calls of one turn used, until the turn's next record takes it along.

A call is counted by a record of its own, in the append of the step or end that it belongs to: so neither is there
without the other, however the process ends. What waits when nobody writes a further record of the turn is written by
itself. A record has a name: what an append that was cut off has written after all is not written twice.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial

import msgspec
import msgspec.structs
from msgspec.structs import replace

from gateway.engine.interface import Engine, NewRecord, append_until_written
from gateway.errors import Duplicate
from gateway.messages.authors import find_hook
from gateway.messages.message import Message
from gateway.messages.transcript import Usage
from gateway.records import records, subjects


class UsageOrigin(msgspec.Struct, frozen=True):
    """Whose doing it is, in which session, and because of which hook."""

    person: str
    session_id: str = ""
    hook: str = ""


def origin_of(message: Message, session_id: str) -> UsageOrigin:
    """A person's message is their doing; a hook's is that of whoever the event was about for which it was said."""
    return UsageOrigin(message.payer, session_id, find_hook(message.user_id) if message.kind == "internal" else "")


class TurnUsage:
    """Puts that wait for the next append; `origin` is the same for all calls of the turn."""

    def __init__(self, origin: UsageOrigin) -> None:
        self.origin = origin
        self.waiting: tuple[NewRecord, ...] = ()

    def make_row(self, usage: Usage) -> records.UsageRow:
        return records.UsageRow(self.origin.person, usage, self.origin.hook, self.origin.session_id)

    def add(self, call: records.RecordedCall, *more: NewRecord) -> None:
        """The next append says that this was used, and what is to be said `more` because of it."""
        put = NewRecord(subjects.USAGE_SUBJECT, records.encode(call), msg_id=f"usage:{call.id}")
        self.waiting += (put, *more)

    def rename(self, people: Collection[str], name: str) -> None:
        """What these people did stands under another name, from what waits on."""
        if self.origin.person in people:
            self.origin = replace(self.origin, person=name)
            self.waiting = tuple(_rename_put(put, name) for put in self.waiting)

    def forget(self, written: Sequence[NewRecord]) -> None:
        """These are in the journal."""
        self.waiting = self.waiting[len(written) :]

    async def write(self, engine: Engine) -> None:
        """Write what waits by itself; what is there already stays once."""
        while self.waiting:
            put = self.waiting[0]
            with suppress(Duplicate):
                await append_until_written(partial(engine.append, put), "the count of a model's call")
            self.forget([put])


def _rename_put(put: NewRecord, name: str) -> NewRecord:
    kept = records.decode(put.data)
    if not isinstance(kept, records.RecordedCall):  # a warning: it is owed to whoever it was about
        return put
    row = msgspec.structs.replace(kept.row, person=name)
    return msgspec.structs.replace(put, data=records.encode(msgspec.structs.replace(kept, row=row)))
