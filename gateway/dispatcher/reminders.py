"""What tools of the agent may do in the chat of their turn: say something, send a file, a poll or a place now, or set a
reminder for later.

A reminder is a record of the journal, and becomes a message to the agent when it is due.

It comes for the person for whom it was set, with their rights at that time, or, set by what a hook had the agent do,
with the rights of that. Its author is `job`. It has an id of its own, so that it comes once, also when
the gateway ends between its coming and its removal; what became due while the gateway was down comes at the start.
Whoever sets the wall clock makes none come sooner or later: they are due by the journal's clock.
"""

import dataclasses
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
import anyio.abc
import msgspec
from msgspec.structs import replace

from gateway.dispatcher.context import DispatcherContext
from gateway.engine.interface import Engine, NewRecord
from gateway.errors import AdapterError, AgentError
from gateway.lanes.turn import LaneTurn
from gateway.messages.authors import can_send, find_hook
from gateway.messages.message import Address, Message, MessageKind, Reply, attachment_from
from gateway.messages.parts import Location, MessagePart, Poll, add_words
from gateway.records import records, subjects
from gateway.roles import Role
from gateway.threads import run_in_thread

OWNER = "gateway/reminders"  # no hook has such a name: a folder's name has no slash in it
MOST_OF_ONE = 50
REMINDER = "reminder-"  # begins the ids of their messages
LOOK_PAUSE = 30.0  # seconds between two looks at the wall clock, at most
DUE_TEXT = "[A reminder that was set here is due. Tell the person, or do what it says.] {}"

AcceptMessage: TypeAlias = Callable[[Message, str], Awaitable[Any]]


class Reminder(msgspec.Struct, frozen=True):
    """A text for the agent, the time at which it is due, and the person and place in whose name it comes."""

    id: str
    at: float
    text: str
    session_key: str
    address: Address
    user_id: str
    role: Role | Literal[""] = ""  # where a hook's work set it: with whose rights it comes
    person: str = ""  # whose doing it is, where that is not who it comes from
    ahead: float = 0.0  # the seconds by which the wall clock was ahead of the journal's when it was set


class Reminders(msgspec.Struct, eq=False):
    """All reminders. They come while `run` runs."""

    engine: Engine
    accept: AcceptMessage
    clock: Callable[[], float] = time.time
    ahead: Callable[[], float] = float

    async def add(self, reminder: Reminder) -> None:
        """Write it down; setting the same one again changes nothing.

        Raises:
            AgentError: there are too many in this session.
        """
        if len(await self.of(reminder.session_key)) >= MOST_OF_ONE:
            raise AgentError(f"there are {MOST_OF_ONE} reminders here already; take some back first")
        reminder = replace(reminder, ahead=self.ahead())
        kept = records.StoredValue(hook=OWNER, key=reminder.id, value=msgspec.to_builtins(reminder))
        await self.engine.append(NewRecord(subjects.hook_store_subject_of(OWNER, reminder.id), records.encode(kept)))

    async def of(self, session_key: str) -> list[Reminder]:
        """Those of one session, the next one first."""
        return [one for one in await self._all() if one.session_key == session_key]

    async def remove(self, session_key: str, number: str) -> bool:
        """Take one back; False when this session has no such one."""
        if number not in {one.id for one in await self.of(session_key)}:
            return False
        return bool(await self.engine.purge(subjects.hook_store_subject_of(OWNER, number)))

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled. One is set on whichever node, and comes on this one."""
        added = await self.engine.tail(subjects.hook_store_subject_of(OWNER))
        task_status.started()
        while True:
            with anyio.move_on_after(min(await self.look(), LOOK_PAUSE)):
                await anext(added, None)

    async def look(self) -> float:
        """Send what is due; returns the seconds until the next one."""
        for one in await self._all():
            if (left := one.at - one.ahead - (self.clock() - self.ahead())) > 0:
                return left
            text = DUE_TEXT.format(one.text)
            kind: MessageKind = "internal" if one.role else "text"
            name, key = f"{REMINDER}{one.id}", one.session_key
            message = Message(name, one.address, one.user_id, text, kind=kind, session=key, role=one.role)
            message = dataclasses.replace(message, person=one.person, is_job=True)
            await self.accept(message, one.session_key)
            await self.engine.purge(subjects.hook_store_subject_of(OWNER, one.id))
        return LOOK_PAUSE

    async def _all(self) -> list[Reminder]:
        found = records.read_all(self.engine, subjects.hook_store_subject_of(OWNER), records.StoredValue)
        kept = {one.key: msgspec.convert(one.value, Reminder) async for _, one in found}
        return sorted(kept.values(), key=lambda one: one.at - one.ahead)


class TurnChat(msgspec.Struct, eq=False):
    """Speaks for a turn: what is said is part of the turn's step in the journal, once, however often the turn runs."""

    turn: LaneTurn
    message: Message
    role: Role
    context: DispatcherContext
    reminders: Reminders

    async def say(self, text: str, to: str, key: str) -> str:
        """Say it here, or there.

        Raises:
            AgentError: there is no such place, or the author of the turn may not send there.
        """
        author = self.message.author
        if to and not can_send(author, self.context.find_limits(find_hook(author)).uses):
            helps = "; `uses: [send]` in its HOOK.yaml allows it" if find_hook(author) else ""
            raise AgentError(f"this turn was begun by `{author}` and sends nothing to other chats{helps}")
        try:
            address = self.context.resolve_destination(to) if to else self.message.address
        except AdapterError as error:
            raise AgentError(str(error)) from None
        await self.turn.say(Reply(f"{self.turn.turn_id}:say:{key}", address, text, role=self.role))
        return "It is being sent."

    async def send_file(self, path: Path, caption: str, key: str) -> str:
        """Send it here; the same call sends it once, however often its turn runs.

        Raises:
            AgentError: it is not there any more.
        """
        try:
            file = await run_in_thread(attachment_from, path)
        except OSError as error:
            raise AgentError(f"{path.name}: {error.strerror}") from None
        reply = Reply(f"{self.turn.turn_id}:file:{key}", self.message.address, caption, (file,), role=self.role)
        await self.turn.say(await self.context.shared_files.share(reply, self.turn.session.key))
        return f"{file.name} ({file.size:,} bytes) is being sent."

    async def send_part(self, part: Poll | Location, key: str) -> str:
        """Send it here; the same call sends it once, however often its turn runs."""
        name, text = f"{self.turn.turn_id}:part:{key}", add_words("", (part,))
        await self.turn.say(Reply(name, self.message.address, text, role=self.role, parts=(part,)))
        return "It is being sent."

    def can_show(self, kind: type[MessagePart]) -> bool:
        return self.context.chats.can_show(self.message.address, kind)

    async def remind(self, text: str, at: float, key: str) -> str:
        number = subjects.token_of(f"{self.turn.turn_id}/{key}")[:6]
        key_, address = self.turn.session.key, self.message.address
        role, person = self.message.role, self.message.person
        await self.reminders.add(Reminder(number, at, text, key_, address, self.message.user_id, role, person))
        return number

    async def list_reminders(self) -> Sequence[tuple[str, float, str]]:
        return [(one.id, one.at, one.text) for one in await self.reminders.of(self.turn.session.key)]

    async def forget(self, number: str) -> bool:
        return await self.reminders.remove(self.turn.session.key, number)
