"""The messages in chats that show an approval: if the chat took them, and their end when it is settled.

The messages are pending replies under ids of ours, and the send journals of the places have their outcome. So nothing
is stored here, and a process after a crash sees the same.
"""

import itertools
import logging
from collections.abc import AsyncIterator
from typing import NamedTuple

import anyio
import msgspec

from gateway.backoff import Backoff
from gateway.engine.interface import Engine, Tail
from gateway.errors import AdapterError
from gateway.messages.message import Reply
from gateway.outbox.interface import MessageIds
from gateway.outbox.outbox import Outbox
from gateway.outbox.send_journal import is_end
from gateway.records import records, subjects
from gateway.records.records import ApprovalRequest

KIND = "approval"  # starts the ids of replies that ask another person; a question may come twice
PLACE_PATIENCE = 8.0  # seconds for one place, before the next one is tried as well
LINGER = 10.0  # seconds for a question that is being sent while it is settled
CLOSE_PAUSES = Backoff(1.0, 60.0)
CLOSE_PATIENCE = 86_400.0  # seconds in which a network takes it; by then no one looks for it

log = logging.getLogger(__name__)


class ShownQuestion(NamedTuple):
    """A reply with a question, and the sequence of its record."""

    owed: int
    reply: Reply


class ShownQuestions(msgspec.Struct, eq=False):
    """Shows questions and closes them."""

    _engine: Engine
    _outbox: Outbox
    _pauses: Backoff = CLOSE_PAUSES

    async def list(self, since: int, request: ApprovalRequest) -> "list[ShownQuestion]":
        """List the messages of one request, which is at `since` in the journal."""
        ids = (f"{KIND}:{request.mark}:", own_reply_id_of(request.turn_id, request.name))
        return [one async for one in self._read(since, request) if one.reply.id.startswith(ids)]

    async def show(self, reply: Reply, request: ApprovalRequest, owed: int | None) -> bool:
        """Post the reply, unless it is `owed` already; return True if the chat took it."""
        sent = await self._tail(reply)
        shown = ShownQuestion(owed or await self._outbox.post(reply, request.session_key), reply)
        with anyio.move_on_after(PLACE_PATIENCE):
            return ids_of(await self._read_end(shown) or await self._hear_end(sent, shown)) is not None
        return False

    async def tell(self, since: int, request: ApprovalRequest, text: str) -> None:
        """Send the person who wants the tool a status, once."""
        number = f"{KIND}-note:{request.mark}:{since}:{subjects.token_of(text)[:6]}"
        if not [one async for one in self._read(since, request) if one.reply.id == number]:
            note = Reply(number, request.address, text, reply_to=request.message_id)
            await self._outbox.post(note, request.session_key)

    async def find_ids(self, shown: ShownQuestion) -> MessageIds:
        """Return the network's ids of the message; empty if it was not delivered."""
        sent = await self._tail(shown.reply)
        ended = await self._read_end(shown)
        if ended is None and await self._is_under_way(shown):
            with anyio.move_on_after(LINGER):
                ended = await self._hear_end(sent, shown)
        return ids_of(ended) or ()

    async def close(self, shown: ShownQuestion, text: str) -> None:
        """Remove its buttons and add the result, as soon as its network can be reached.

        Until then, and if the network refuses, pressing a button has no effect.
        """
        ids = await self.find_ids(shown)
        with anyio.move_on_after(CLOSE_PATIENCE):
            for attempt in itertools.count(1) if any(ids) else ():
                try:
                    await self._outbox.close_question(shown.reply, ids, text)
                    return
                except AdapterError as error:
                    if attempt == 1 or error.permanent:
                        log.info("a question in %s is not closed: %s", shown.reply.address.chat_id, error)
                    if error.permanent:
                        return
                await anyio.sleep(self._pauses.pause_after(attempt))

    async def _read(self, since: int, request: ApprovalRequest) -> AsyncIterator[ShownQuestion]:
        pattern = subjects.reply_pattern_of_session(request.session_key)
        async for record, kept in records.read_all(self._engine, pattern, records.OwedReply, since):
            yield ShownQuestion(record.seq, kept.reply)

    async def _tail(self, reply: Reply) -> Tail:
        return await self._engine.tail(subjects.send_subject_of(subjects.place_of(reply.address)))

    async def _read_end(self, shown: ShownQuestion) -> records.SendRecord | None:
        """Return the end of its delivery, if it has ended."""
        where = subjects.send_subject_of(subjects.place_of(shown.reply.address))
        async for _, kept in records.read_all(self._engine, where, records.SendRecord, shown.owed):
            if is_end_of(kept, shown):
                return kept
        return None

    async def _hear_end(self, sent: Tail, shown: ShownQuestion) -> records.SendRecord | None:
        async for record in sent:
            kept = records.decode(record.data)
            if isinstance(kept, records.SendRecord) and is_end_of(kept, shown):
                return kept
        return None

    async def _is_under_way(self, shown: ShownQuestion) -> bool:
        where = subjects.send_subject_of(subjects.place_of(shown.reply.address))
        _, kept = await records.read_last(self._engine, where, records.SendIntent)
        return kept is not None and kept.out == shown.owed


def own_reply_id_of(turn_id: str, question: str) -> str:
    """Return the id of the reply that asks the author of this turn's message."""
    return f"{turn_id}:ask:{subjects.token_of(question)}"


def is_end_of(kept: records.SendRecord, shown: ShownQuestion) -> bool:
    return is_end(kept) and kept.out == shown.owed


def ids_of(kept: records.SendRecord | None) -> MessageIds | None:
    return kept.message_ids if isinstance(kept, records.SendSucceeded) else None
