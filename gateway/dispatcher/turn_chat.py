"""Acts of the agent's tools in the chat of their turn: send a text, a file, a poll or a place, or set a reminder."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from gateway.dispatcher.context import DispatcherContext
from gateway.errors import AdapterError, AgentError
from gateway.jobs.reminders import Reminder, Reminders
from gateway.lanes.turn import LaneTurn
from gateway.messages.authors import can_send, find_hook
from gateway.messages.message import Message, Reply, attachment_from
from gateway.messages.parts import Location, MessagePart, Poll, add_words
from gateway.messages.roles import Role
from gateway.records import subjects
from gateway.threads import run_in_thread


class TurnChat(msgspec.Struct, eq=False):
    """Sends texts for a turn.

    Each is part of the turn's step in the journal, and sent once, however often the turn runs.
    """

    turn: LaneTurn
    message: Message
    role: Role
    context: DispatcherContext
    reminders: Reminders

    async def say(self, text: str, to: str, key: str) -> str:
        """Send a text here, or to another place.

        Raises:
            AgentError: the place was not found, or the author of the turn may not send there.
        """
        author = self.message.author
        if to and not can_send(author, self.context.agents.find_limits(find_hook(author)).uses):
            helps = "; `uses: [send]` in its HOOK.yaml allows it" if find_hook(author) else ""
            raise AgentError(f"this turn was begun by `{author}` and sends nothing to other chats{helps}")
        try:
            address = self.context.places.resolve_destination(to) if to else self.message.address
        except AdapterError as error:
            raise AgentError(str(error)) from None
        await self.turn.say(Reply(f"{self.turn.turn_id}:say:{key}", address, text, role=self.role))
        return "It is being sent."

    async def send_file(self, path: Path, caption: str, key: str) -> str:
        """Send a file here; the same call sends it once, however often its turn runs.

        Raises:
            AgentError: the file is gone.
        """
        try:
            file = await run_in_thread(attachment_from, path)
        except OSError as error:
            raise AgentError(f"{path.name}: {error.strerror}") from None
        reply = Reply(f"{self.turn.turn_id}:file:{key}", self.message.address, caption, (file,), role=self.role)
        await self.turn.say(await self.context.files.shared.share(reply, self.turn.session.key))
        return f"{file.name} ({file.size:,} bytes) is being sent."

    async def send_part(self, part: Poll | Location, key: str) -> str:
        """Send a part here; the same call sends it once, however often its turn runs."""
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
