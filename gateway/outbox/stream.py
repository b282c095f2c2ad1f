"""An answer that is displayed while it is written: a placeholder, which grows.

The ids of the displayed messages are in a small send journal for the reply's id, with `out` 0 because the reply itself
is not in the journal yet. So the delivery of the finished reply, even after a crash, turns the placeholder into the
reply instead of sending it a second time, and ends its growth if the network needs that; and a turn that runs again
continues in the same placeholder.

If the network has drafts, an unfinished part is a draft: not a message, without id and record in the journal, and the
reply is sent as if it had not been streamed. Each network's `Transport` knows its way.

An answer that is complete soon after it began is not displayed early: it is sent once. Neither is an answer whose reply
is already pending: its text comes live, from any node, and may come late.

Displaying is best effort: failures are left to the delivery, and after MAX_FAILURES in a row nothing more is displayed.
A placeholder is a message in its place like every other: it does not appear before replies that were pending earlier.
"""

import logging
import math
from dataclasses import replace

import anyio
import msgspec

from gateway.engine.interface import Engine, NewRecord
from gateway.errors import AdapterError, EngineError
from gateway.messages.message import Reply
from gateway.outbox.interface import MessageIds, OutboxSettings, Transport, nonce_of
from gateway.outbox.send_journal import read_position, read_shown_part
from gateway.outbox.stream_writer import StreamPiece
from gateway.records import records, subjects

log = logging.getLogger(__name__)

MAX_FAILURES = 3


class SentParts(msgspec.Struct):
    """The part of a growing reply that the network has."""

    ids: MessageIds | None = None
    is_drafted: bool = False
    finished: int = 0  # parts that do not change when the text continues
    failures: int = 0


class Stream:
    """Stream one reply to the chat while its turn runs, under one claim. Created with the first piece of text.

    `shown` is the reply as the network displays it in full; None if it displays none, or if this is unknown.
    """

    def __init__(self, first: StreamPiece, engine: Engine, transport: Transport, settings: OutboxSettings) -> None:
        self.reply = reply = first.reply
        self.claimed = first.claimed
        self.shown: Reply | None = None
        self._engine = engine
        self._transport = transport
        self._settings = settings
        self._place = subjects.place_of(reply.address)
        self._text = ""
        self._sent = SentParts()
        self.shown_at = -math.inf  # when the network last took text of it
        self._gone_at = math.inf  # until when it waits for the writer
        self._news = anyio.Event()
        self._resting = anyio.Event()
        self._closing = anyio.Event()
        self._ended = anyio.Event()

    def take(self, piece: StreamPiece) -> None:
        """Take a piece of text; pieces within the network's rate are shown together.

        After a gap, wait for the whole text.
        """
        self._gone_at = anyio.current_time() + self._settings.stream_silence
        if piece.is_over:
            self.rest()
        elif piece.at == 0 and piece.text != self._text:
            self._sent.finished = self._sent.finished if piece.text.startswith(self._text) else 0
            self._text = piece.text
            self._news.set()
        elif piece.at and piece.at == len(self._text):
            self._text += piece.text
            self._news.set()

    def rest(self) -> None:
        """Expect no more text. If no delivery closes the stream soon, what is displayed is ended as it is."""
        self._resting.set()
        self._news.set()

    async def close(self) -> None:
        """Stop displaying; return when no call is running."""
        self._closing.set()
        self.rest()
        await self._ended.wait()

    async def run(self) -> None:
        try:
            await self._news.wait()
            await self._wait_or_close(self._settings.stream_after)
            if self._closing.is_set() or await is_reply_owed(self._engine, self.reply, self.claimed):
                return
            await self._show_all()
            await self._resting.wait()
            await self._wait_or_close(self._settings.stream_rests)
            if not self._closing.is_set():
                await self._end_growing()
        finally:
            self._ended.set()

    async def _show_all(self) -> None:
        """Display text until all of it is shown, or it fails too often."""
        while not self._closing.is_set() and self._sent.failures < MAX_FAILURES:
            await self._wait_for_news()
            await self._wait_for_earlier_replies()
            if self._text and not self._closing.is_set():
                await self._try_to_show(replace(self.reply, text=self._text))
                await self._wait_or_close(self._settings.edit_pause)
            if self._resting.is_set() and not self._news.is_set():
                return

    async def _wait_for_news(self) -> None:
        """Wait for text; a draft is also shown again in time, because it disappears."""
        again = anyio.current_time() + (self._settings.draft_lasts if self._sent.is_drafted else math.inf)
        while not self._news.is_set() and anyio.current_time() < again:
            with anyio.CancelScope(deadline=min(again, self._gone_at)):
                await self._news.wait()
            if anyio.current_time() >= self._gone_at:
                self.rest()
        self._news = anyio.Event()

    async def _wait_for_earlier_replies(self) -> None:
        """Wait until earlier replies of the place are sent, or the stream is closed."""
        while (
            self._sent.ids is None and not self._closing.is_set() and await has_owed_replies(self._engine, self._place)
        ):
            await self._wait_or_close(self._settings.edit_pause)

    async def _try_to_show(self, reply: Reply) -> None:
        before, self.shown = self.shown, None
        try:
            self.shown = await self._show_parts(reply, before)
            self._sent.failures, self.shown_at = 0, anyio.current_time()
        except AdapterError as error:
            if error.retry_after:  # nothing was done
                self.shown = before
                self._news.set()
            self._sent.failures = MAX_FAILURES if error.permanent else self._sent.failures + 1
            log.info("a piece of reply %s is not shown: %s", reply.id, error)
            await self._wait_or_close(error.retry_after or self._settings.edit_pause)
        except EngineError as error:
            self._sent.failures += 1
            log.info("a piece of reply %s is not shown: %s", reply.id, error)
        except Exception:  # an SDK's own fault; the delivery will report it
            self._sent.failures = MAX_FAILURES
            log.exception("reply %s is no longer shown while it is written", reply.id)

    async def _show_parts(self, reply: Reply, before: Reply | None) -> Reply | None:
        """Extend the last part, and send further ones; return the displayed reply, if it is complete."""
        ids, count = await self._load(), self._transport.texts(reply)
        is_whole = len(ids) < 2 or (before is not None and reply.text.startswith(before.text))
        for part in range(max(0, len(ids) - 1), count):
            is_last, self._sent.is_drafted = part == count - 1, False
            if part == len(ids):
                if is_last and await self._draft(reply, part):
                    break
                ids = await self._begin(reply, part, ids)
                before = reply
            elif is_last:
                await self._transport.grow(reply, part, ids[part], before)
            if not is_last and part >= self._sent.finished:
                await self._transport.finish(reply, part, ids[part], before)
                self._sent.finished = part + 1
        return reply if is_whole and count >= len(ids) else None

    async def _draft(self, reply: Reply, part: int) -> bool:
        if self._transport.capability(reply.address).can_draft:
            self._sent.is_drafted = await self._transport.draft(reply, part)
        return self._sent.is_drafted

    async def _begin(self, reply: Reply, part: int, ids: MessageIds) -> MessageIds:
        intent = records.SendIntent(out=0, reply_id=reply.id, part=part, message_ids=ids)
        await write_shown_part(self._engine, self._place, intent)
        with anyio.CancelScope(shield=True):
            ids = self._sent.ids = (*ids, await self._transport.begin(reply, part, nonce_of(reply.id, part)))
            shown = records.SendSucceeded(out=0, reply_id=reply.id, part=part, message_ids=ids, last=False)
            await write_shown_part(self._engine, self._place, shown)
        return ids

    async def _end_growing(self) -> None:
        """End the growth, because no delivery follows: its turn waits for a person, or has no more text."""
        try:
            if ids := await self._load():
                await self._transport.close(self.reply.address, ids[-1])
        except (AdapterError, EngineError) as error:
            log.info("what is shown of reply %s is not ended: %s", self.reply.id, error)

    async def _load(self) -> MessageIds:
        """Return the ids of the displayed parts, at first those of an earlier run of the turn."""
        ids = self._sent.ids
        if ids is None:
            ids = self._sent.ids = await find_shown_parts(self._engine, self._transport, self.reply)
        return ids

    async def _wait_or_close(self, seconds: float) -> None:
        """Keep to the network's rate, except that a close need not wait for it."""
        with anyio.move_on_after(seconds):
            await self._closing.wait()


async def find_shown_parts(engine: Engine, transport: Transport, reply: Reply) -> MessageIds:
    """Return the ids of the parts that a stream of this reply has displayed, in this process or another.

    Requests to the network are recorded: after an edit it may not find the part again.
    """
    place = subjects.place_of(reply.address)
    last = await read_shown_part(engine, place, reply.id)
    if last is None:
        return ()
    if isinstance(last, records.SendIntent) and transport.doubt == "lookup":
        if not (found := await transport.find_begun(reply, last.part, nonce_of(reply.id, last.part))):
            return last.message_ids
        last = records.SendSucceeded(
            out=0, reply_id=reply.id, part=last.part, message_ids=(*last.message_ids, found), last=False
        )
        await write_shown_part(engine, place, last)
    return last.message_ids


async def write_shown_part(engine: Engine, place: str, kept: records.SendIntent | records.SendSucceeded) -> None:
    """Write to the send journal of this reply's stream."""
    subject = subjects.send_subject_of(place, kept.reply_id)
    await engine.append(NewRecord(subject, records.encode(kept), ttl=records.DAY))


async def is_reply_owed(engine: Engine, reply: Reply, claimed: int) -> bool:
    """Return True if a reply of this id was appended after the claim.

    An ill journal counts as yes: nothing is displayed.
    """
    pattern = subjects.reply_pattern_of_place(subjects.place_of(reply.address))
    try:
        found = [kept.reply.id async for _, kept in records.read_all(engine, pattern, records.OwedReply, claimed)]
    except EngineError:
        return True
    return reply.id in found


async def has_owed_replies(engine: Engine, place: str) -> bool:
    """Return True if an unsettled reply waits; an ill journal is no reason to go before others."""
    try:
        settled = (await read_position(engine, place)).upto
        return bool(await records.read_readable(engine, subjects.reply_pattern_of_place(place), settled, 1))
    except EngineError:
        return True
