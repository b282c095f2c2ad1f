"""What is to be said in a conversation later: each a record of the journal, and a message to the agent when it is due.

A reminder comes as a message of the person for whom it was set, with their rights at that time. It has an id of its
own, so that it comes once, also when the gateway ends between its coming and its removal; what became due while the
gateway was down comes at the start.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
import anyio.abc
import msgspec

from gateway import records
from gateway.engine import Engine, NewRecord
from gateway.errors import AgentError
from gateway.messages import Address, Message

OWNER = "gateway/reminders"  # no hook has such a name: a folder's name has no slash in it
MOST = 10_000
MOST_OF_ONE = 50
LOOK_PAUSE = 30.0  # seconds between two looks at the wall clock, at most
DUE_TEXT = "[A reminder that was set here is due. Tell the person, or do what it says.] {}"

AcceptMessage: TypeAlias = Callable[[Message, str], Awaitable[Any]]


class Reminder(msgspec.Struct, frozen=True):
    """One of them."""

    id: str
    at: float
    text: str
    session_key: str
    address: Address
    user_id: str


class Reminders:
    """`run` until cancelled; it alone makes them come."""

    def __init__(self, engine: Engine, accept: AcceptMessage, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._accept = accept
        self._clock = clock
        self._news = anyio.Event()

    async def add(self, reminder: Reminder) -> None:
        """Write it down; setting the same one again changes nothing. AgentError: there are too many."""
        if len(await self.of(reminder.session_key)) >= MOST_OF_ONE:
            raise AgentError(f"there are {MOST_OF_ONE} reminders here already; take some back first")
        kept = records.StoredValue(hook=OWNER, key=reminder.id, value=msgspec.to_builtins(reminder))
        await self._engine.append(NewRecord(records.hook_store_subject_of(OWNER, reminder.id), records.encode(kept)))
        self._news.set()

    async def of(self, session_key: str) -> list[Reminder]:
        """Those of one session, the next one first."""
        return [one for one in await self._all() if one.session_key == session_key]

    async def remove(self, session_key: str, number: str) -> bool:
        """Take one back; False when this session has no such one."""
        if number not in {one.id for one in await self.of(session_key)}:
            return False
        return bool(await self._engine.purge(records.hook_store_subject_of(OWNER, number)))

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            self._news = anyio.Event()
            with anyio.move_on_after(min(await self.look(), LOOK_PAUSE)):
                await self._news.wait()

    async def look(self) -> float:
        """Let come what is due; the seconds until the next one."""
        for one in await self._all():
            if (left := one.at - self._clock()) > 0:
                return left
            text = DUE_TEXT.format(one.text)
            message = Message(f"reminder-{one.id}", one.address, one.user_id, text, session=one.session_key)
            await self._accept(message, one.session_key)
            await self._engine.purge(records.hook_store_subject_of(OWNER, one.id))
        return LOOK_PAUSE

    async def _all(self) -> list[Reminder]:
        found = [
            records.decode(record.data)
            for record in await self._engine.read(records.hook_store_subject_of(OWNER), limit=MOST)
        ]
        kept = {one.key: msgspec.convert(one.value, Reminder) for one in found if isinstance(one, records.StoredValue)}
        return sorted(kept.values(), key=lambda one: one.at)
