"""The usage of one turn's calls, until the turn's next record includes it.

A call is counted by a record of its own, in the append of the step or end that it belongs to: so neither exists without
the other, however the process ends. If the turn has no further record, the waiting ones are written by themselves. A
record has a name: if an append that was cut off was written after all, it is not written twice.
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
    """The person who caused the usage, the session, and the hook if one began it."""

    person: str
    session_id: str = ""
    hook: str = ""


def origin_of(message: Message, session_id: str) -> UsageOrigin:
    """Return the origin of a turn: the person who wrote, or the person whom a hook's event was about."""
    return UsageOrigin(message.payer, session_id, find_hook(message.user_id) if message.kind == "internal" else "")


class TurnUsage(msgspec.Struct, eq=False, weakref=True):
    """The records that wait for the next append; `origin` is the same for all calls of the turn."""

    origin: UsageOrigin
    waiting: tuple[NewRecord, ...] = ()

    def make_row(self, usage: Usage) -> records.UsageRow:
        return records.UsageRow(self.origin.person, usage, self.origin.hook, self.origin.session_id)

    def add(self, call: records.RecordedCall, *more: NewRecord) -> None:
        """Add a call, and the records `more` that it causes, to the next append."""
        put = NewRecord(subjects.USAGE_SUBJECT, records.encode(call), msg_id=f"usage:{call.id}")
        self.waiting += (put, *more)

    def rename(self, people: Collection[str], name: str) -> None:
        """Move the usage of these people to another name, including the waiting records."""
        if self.origin.person in people:
            self.origin = replace(self.origin, person=name)
            self.waiting = tuple(_rename_put(put, name) for put in self.waiting)

    def forget(self, written: Sequence[NewRecord]) -> None:
        """Remove records that are in the journal."""
        self.waiting = self.waiting[len(written) :]

    async def write(self, engine: Engine) -> None:
        """Write the waiting records by themselves; a record that is in the journal already stays once."""
        while self.waiting:
            put = self.waiting[0]
            with suppress(Duplicate):
                await append_until_written(partial(engine.append, put), "the count of a model's call")
            self.forget([put])


def _rename_put(put: NewRecord, name: str) -> NewRecord:
    kept = records.decode(put.data)
    if not isinstance(kept, records.RecordedCall):  # a warning goes to the person it was about
        return put
    row = msgspec.structs.replace(kept.row, person=name)
    return msgspec.structs.replace(put, data=records.encode(msgspec.structs.replace(kept, row=row)))
