"""The activity log: the acts of the people and programs that steer the gateway, and the acts that were denied.

It is append-only: neither retention nor the removal of a session reaches it, and it cannot be switched off. It names
hooks, people and sessions, and contains no secret and no word of a conversation. Repeated looks at one thing, or
repeated denials, are recorded once a minute, so that they cannot fill the journal.
"""

import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

import msgspec

from gateway.engine.interface import Engine, NewRecord, Record
from gateway.errors import Duplicate, EngineError
from gateway.messages.roles import Role
from gateway.records import records, subjects
from gateway.records.records import ActivityRecord

log = logging.getLogger(__name__)

QUIET_SECONDS = 60.0
MOST_REMEMBERED = 1000
LONGEST_NAME = 200


class Caller(NamedTuple):
    """A caller's name, place and role."""

    name: str
    place: str
    role: Role


HOOK_PLACE = "control socket"  # of processes that the gateway has started itself
DESK_PLACE = "desk"  # of what a connected program has started
TERMINAL_PLACE = "terminal"  # of a person at the control socket
PAGE_PLACE = "page "  # begins the place of a person on the page
OWNER_LOGIN = "login "  # begins the name of a person with the owner's login there
OWNER = Caller("owner", TERMINAL_PLACE, "owner")  # the caller where no check identified one
CALLER: ContextVar[Caller] = ContextVar("caller")
"""The caller of the present request; set at the control socket and at the port."""


class Activity(msgspec.Struct, eq=False):
    """The activity log: it writes and reads the records."""

    _engine: Engine
    _clock: Callable[[], float] = time.monotonic
    _recent: OrderedDict[ActivityRecord, float] = msgspec.field(default_factory=OrderedDict)

    async def write(self, done: ActivityRecord, *, is_look: bool = False) -> None:
        """Record an act of the person in it, or of the present caller. A failure to write does not undo the act."""
        who, place = (done.who, done.place) if done.who else CALLER.get(OWNER)[:2]
        names = {"who": who, "place": place, "on": done.on}
        named = msgspec.structs.replace(done, **{field: name[:LONGEST_NAME] for field, name in names.items()})
        if (is_look or named.outcome == "refused") and self._is_repeated(named):
            return
        try:
            entry = msgspec.structs.replace(named, at=time.time())
            await self._engine.append(NewRecord(subjects.ACTIVITY_SUBJECT, records.encode(entry)))
        except EngineError as error:
            what = f"{named.what} {named.on} by {named.who} from {named.place}"
            log.error("not in the record of activity: %s (%s): %s", what, named.outcome, error)

    async def rename(self, person: str, pseudonym: str) -> None:
        """Replace a person who is forgotten by a pseudonym. A rewritten record keeps its time."""
        name = re.compile(rf"(?<![^\s]){re.escape(person)}(?![^\s])")
        async for record, kept in records.read_all(self._engine, subjects.ACTIVITY_SUBJECT, ActivityRecord):
            fields = {field: name.sub(pseudonym, getattr(kept, field)) for field in ("who", "place", "on")}
            if (renamed := msgspec.structs.replace(kept, **fields)) != kept:
                again = f"{record.subject}:{record.seq}"  # once, even after a crash before the old one is removed
                with suppress(Duplicate):
                    await self._engine.append(NewRecord(record.subject, records.encode(renamed), msg_id=again))
                await records.purge_record(self._engine, record)

    async def read(self, after: int, since: float) -> tuple[list[dict[str, Any]], int]:
        """Return the next records after a sequence, oldest first, and the sequence to continue from; 0 at the end."""
        page = await records.read_readable(self._engine, subjects.ACTIVITY_SUBJECT, after, records.PAGE)
        return _as_rows(page, since), page[-1].seq if page else 0

    async def read_last(self, before: int, most: int, since: float) -> tuple[list[dict[str, Any]], int]:
        """Return the last records before a sequence, oldest first, and the sequence to continue from; 0 at the end."""
        newest = await self._engine.last(subjects.ACTIVITY_SUBJECT)
        end = min(before, newest.seq + 1) if newest else 0
        found = await records.read_last_records(self._engine, subjects.ACTIVITY_SUBJECT, end, most)
        rows = _as_rows(found, since)
        return rows, found[0].seq if len(found) == most == len(rows) else 0

    def _is_repeated(self, done: ActivityRecord) -> bool:
        now = self._clock()
        if now - self._recent.get(done, -QUIET_SECONDS) < QUIET_SECONDS:
            return True
        self._recent[done] = now
        self._recent.move_to_end(done)
        if len(self._recent) > MOST_REMEMBERED:
            self._recent.popitem(last=False)
        return False


def _as_rows(found: Iterable[Record], since: float) -> list[dict[str, Any]]:
    kept = (records.decode_readable(one.data) for one in found)
    done = [one for one in kept if isinstance(one, ActivityRecord) and one.at >= since]
    done.sort(key=lambda one: one.at)  # some were rewritten
    fields = ("at", "who", "place", "what", "on", "outcome")
    return [{name: getattr(one, name) for name in fields} for one in done]
