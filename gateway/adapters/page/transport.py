"""The sending end of the page's chat: a reply is sent once its shown form is in the journal.

The text after the hooks counts, and a settled question is shown without its buttons. Each version is stored once,
however often a crash repeats it.
"""

from contextlib import suppress

from gateway.adapters.page.places import PLATFORM, subject_of
from gateway.engine.interface import Engine, NewRecord
from gateway.errors import Duplicate
from gateway.messages.message import Message, Reply
from gateway.outbox.interface import JournalTransport
from gateway.records.records import PAGE_TTL, ShownMessage, encode
from gateway.records.subjects import token_of


class PageTransport(JournalTransport):
    """The sending of replies to the page; fills `Transport`."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(PLATFORM)
        self._engine = engine

    def list_shown(self, reply: Reply) -> list[NewRecord]:
        return [make_reply_put(reply)]

    async def send(self, reply: Reply, _part: int, _nonce: str) -> tuple[str, ...]:
        with suppress(Duplicate):
            await self._engine.append(make_reply_put(reply, msg_id=f"page:{reply.id}"))
        return (reply.id,)

    async def edit(self, reply: Reply, _part: int, _message_ids: tuple[str, ...]) -> None:
        """Store the edited reply; every node that serves the page may try, and only the first attempt writes it."""
        with suppress(Duplicate):
            await self._engine.append(make_reply_put(reply, msg_id=f"page:{reply.id}:{token_of(reply.text)}"))


def make_reply_put(reply: Reply, msg_id: str | None = None) -> NewRecord:
    """Make the record that shows a reply from now on."""
    return NewRecord(subject_of(reply.address), encode(ShownMessage(reply=reply)), msg_id=msg_id, ttl=PAGE_TTL)


def make_message_put(message: Message) -> NewRecord:
    """Make the record that shows a person's message, once."""
    name = f"page:{message.user_id}:{message.id}"
    shown = encode(ShownMessage(message=message, at=message.sent_at))
    return NewRecord(subject_of(message.address), shown, msg_id=name, ttl=PAGE_TTL)
