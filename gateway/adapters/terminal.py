"""The terminal as a chat network: its people sit behind the control socket, and what they are sent is the journal.

A reply counts as delivered once it is journalled: whoever is connected sees it at once, whoever comes later finds it
in the session. So a terminal is never out of reach, and closing one loses nothing.
"""

import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from gateway import records
from gateway.engine import Engine, Record
from gateway.errors import GatewayError
from gateway.messages import Address, Message, Receive
from gateway.sessions import session_key

PLATFORM = "terminal"
OWNER = "owner"

Notify: TypeAlias = Callable[[str, Any], Awaitable[None]]


class Say(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message typed by a person."""

    text: str
    session: str = "main"


class Said(msgspec.Struct, frozen=True):
    """How the gateway answered it."""

    session: str
    reply: str
    status: str
    turn_id: str = ""
    error: str = ""


class Delta(msgspec.Struct, frozen=True):
    """A piece of an answer, while the model is still writing it; live only."""

    turn_id: str
    text: str


class Terminal:
    """Takes what people type, and shows them what is journalled for their session until they are answered."""

    def __init__(self, engine: Engine, receive: Receive) -> None:
        self._engine = engine
        self._receive = receive

    async def say(self, params: dict[str, Any], notify: Notify) -> Said:
        """The control verb: one message in; its stream and replies as notifications; how it ended as the result."""
        try:
            typed = msgspec.convert(params, Say)
        except msgspec.ValidationError as error:
            raise GatewayError(f"chat.say: {error}") from None
        message = message_of(typed)
        heard = self._engine.tail(*live_subjects(message))  # before it is sent, so that nothing is missed
        receipt = await self._receive(message)
        if receipt.settled is not None:
            return Said(typed.session, receipt.settled, "command")
        return await Watcher(receipt.seq, typed.session, notify).until_done(heard)


class Watcher:
    """Shows one message's answer as it comes."""

    def __init__(self, seq: int, session: str, notify: Notify) -> None:
        self._seq = seq
        self._session = session
        self._notify = notify
        self._texts: dict[str, list[str]] = {}

    async def until_done(self, heard: AsyncIterator[Record]) -> Said:
        async for record in heard:
            if record.seq == 0:
                await self._notify("delta", msgspec.json.decode(record.data))
                continue
            match records.decode(record.data):
                case records.Outbound(reply=reply, turn_id=turn_id):
                    self._texts.setdefault(turn_id, []).append(reply.text)
                    await self._notify("reply", {"turn_id": turn_id, "text": reply.text})
                case records.Done(upto=upto) as done if upto >= self._seq:
                    return self._said(done)
        raise GatewayError("the gateway stops; the message is kept, and answered when it runs again")

    def _said(self, done: records.Done) -> Said:
        texts = self._texts.get(done.turn_id, [])
        return Said(self._session, "\n\n".join(texts), done.status, done.turn_id, done.error)


def message_of(typed: Say) -> Message:
    address = Address(PLATFORM, typed.session)
    return Message(uuid.uuid4().hex, address, OWNER, typed.text, session=typed.session, sent_at=time.time())


def live_subjects(message: Message) -> tuple[str, ...]:
    """Where the journal speaks of the session that a message goes to."""
    key = session_key(message)
    return records.subject("turn", key), records.out_of_session(key), records.delta_subject(key)
