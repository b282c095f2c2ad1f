"""Reminders: each is a record of the journal, and becomes a message to the agent when it is due.

It comes in the name of the person for whom it was set, with their rights at that time, or, if a hook's task set it,
with the rights of that task. Its author is `job`. It has an id of its own, so that it comes once, even if the gateway
ends between its coming and its removal; reminders that became due while the gateway was down come at the start. They
are due by the journal's clock, so setting the wall clock does not shift them.
"""

import dataclasses
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

import anyio
import anyio.abc
import msgspec
from msgspec.structs import replace

from gateway.engine.interface import Engine
from gateway.errors import AgentError
from gateway.messages.message import Address, Message, MessageKind
from gateway.messages.roles import Role
from gateway.records import subjects
from gateway.records.stores import make_value_put, read_store

MOST_OF_ONE = 50
REMINDER = "reminder-"  # starts the ids of their messages
LOOK_PAUSE = 30.0  # seconds between two checks of the wall clock, at most
DUE_TEXT = "[A reminder that was set here is due. Tell the person, or do what it says.] {}"

AcceptMessage: TypeAlias = Callable[[Message, str], Awaitable[Any]]


class Reminder(msgspec.Struct, frozen=True):
    """A text for the agent, its time, and the person and place in whose name it comes."""

    id: str
    at: float
    text: str
    session_key: str
    address: Address
    user_id: str
    role: Role | Literal[""] = ""  # the rights with which it comes, if a hook's task set it
    person: str = ""  # the person responsible, if it comes in another name
    ahead: float = 0.0  # the seconds by which the wall clock was ahead of the journal's when it was set


class Reminders(msgspec.Struct, eq=False):
    """All reminders. They come while `run` runs."""

    engine: Engine
    clock: Callable[[], float] = time.time
    ahead: Callable[[], float] = float

    async def add(self, reminder: Reminder) -> None:
        """Store a reminder; setting the same one again changes nothing.

        Raises:
            AgentError: this session has too many.
        """
        if len(await self.of(reminder.session_key)) >= MOST_OF_ONE:
            raise AgentError(f"there are {MOST_OF_ONE} reminders here already; take some back first")
        reminder = replace(reminder, ahead=self.ahead())
        await self.engine.append(make_value_put(subjects.REMINDERS, reminder.id, msgspec.to_builtins(reminder)))

    async def of(self, session_key: str) -> list[Reminder]:
        """Return the reminders of one session, next one first."""
        return [one for one in await self._all() if one.session_key == session_key]

    async def remove(self, session_key: str, number: str) -> bool:
        """Cancel a reminder; return False if this session does not have it."""
        if number not in {one.id for one in await self.of(session_key)}:
            return False
        return bool(await self.engine.purge(subjects.hook_store_subject_of(subjects.REMINDERS, number)))

    async def run(
        self, accept: AcceptMessage, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Send reminders until cancelled. Any node may set one; this node sends it."""
        added = await self.engine.tail(subjects.hook_store_subject_of(subjects.REMINDERS))
        task_status.started()
        while True:
            with anyio.move_on_after(min(await self.look(accept), LOOK_PAUSE)):
                await anext(added, None)

    async def look(self, accept: AcceptMessage) -> float:
        """Send due reminders; return the seconds until the next one."""
        for one in await self._all():
            if (left := one.at - one.ahead - (self.clock() - self.ahead())) > 0:
                return left
            text = DUE_TEXT.format(one.text)
            kind: MessageKind = "internal" if one.role else "text"
            name, key = f"{REMINDER}{one.id}", one.session_key
            message = Message(name, one.address, one.user_id, text, kind=kind, session=key, role=one.role)
            message = dataclasses.replace(message, person=one.person, is_job=True)
            await accept(message, one.session_key)
            await self.engine.purge(subjects.hook_store_subject_of(subjects.REMINDERS, one.id))
        return LOOK_PAUSE

    async def _all(self) -> list[Reminder]:
        found = read_store(self.engine, subjects.REMINDERS)
        kept = {one.key: msgspec.convert(one.value, Reminder) async for _, one in found}
        return sorted(kept.values(), key=lambda one: one.at - one.ahead)
