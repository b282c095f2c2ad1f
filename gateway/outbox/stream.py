"""An answer that is shown while it is written: a placeholder, which then grows.

The ids of what is shown stand in a small send journal of the reply's own, keyed by the reply's id, with `out` 0 because
the reply itself is not in the journal yet. So whoever delivers the finished reply, after a crash too, makes the
placeholder the reply instead of sending it a second time, and ends its growing, where the network has to be told that;
and a turn that runs again goes on in the same placeholder.

Where the network has drafts, what is not whole yet is shown as one: a draft is no message, has no id and no note in the
journal, and the reply is sent as if nobody had streamed it. How each network does it, its `Transport` says.

Nothing is shown of an answer that is whole soon after it began: it is sent once, as if nobody had streamed it. Nor is
anything of one that is owed already: what was written of it comes live, from wherever its turn runs, and may come late.

Showing is best effort: what fails here is left to the delivery, and after MAX_FAILURES in a row no more is shown.
A placeholder is a message in its place like every other: it does not appear before those that were owed earlier.
"""

import logging
import math
from dataclasses import replace

import anyio

from gateway.engine.interface import Engine, NewRecord
from gateway.errors import AdapterError, EngineError
from gateway.messages.message import Reply
from gateway.outbox.interface import MessageIds, OutboxSettings, Transport, nonce_of
from gateway.outbox.send_journal import read_position, read_shown_part
from gateway.outbox.stream_writer import StreamPiece
from gateway.records import records, subjects

log = logging.getLogger(__name__)

MAX_FAILURES = 3


class Stream:
    """Shows a reply as it grows, by the pieces of one claim on its turn, the first of which it is made with.

    `shown` is the reply as the network shows it whole; None: it shows none, or nobody knows.
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
        self._ids: MessageIds | None = None
        self._is_drafted = False
        self._finished = 0  # parts that do not change when the text goes on
        self._failures = 0
        self.shown_at = -math.inf  # when the network last took words of it
        self._gone_at = math.inf  # so long it is waited for the writer
        self._news = anyio.Event()
        self._resting = anyio.Event()
        self._closing = anyio.Event()
        self._ended = anyio.Event()

    def take(self, piece: StreamPiece) -> None:
        """Go on with it; what comes within the network's pace is shown together. Behind a gap it waits for all."""
        self._gone_at = anyio.current_time() + self._settings.stream_silence
        if piece.is_over:
            self.rest()
        elif piece.at == 0 and piece.text != self._text:
            self._finished = self._finished if piece.text.startswith(self._text) else 0
            self._text = piece.text
            self._news.set()
        elif piece.at and piece.at == len(self._text):
            self._text += piece.text
            self._news.set()

    def rest(self) -> None:
        """Nothing more is written. Where no delivery closes the stream soon, what is shown is ended as it stands."""
        self._resting.set()
        self._news.set()

    async def close(self) -> None:
        """Show no more; returns when no call is under way."""
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
        """Until all is shown that was written, or it fails too often."""
        while not self._closing.is_set() and self._failures < MAX_FAILURES:
            await self._wait_for_news()
            await self._wait_for_earlier_replies()
            if self._text and not self._closing.is_set():
                await self._try_to_show(replace(self.reply, text=self._text))
                await self._wait_or_close(self._settings.edit_pause)
            if self._resting.is_set() and not self._news.is_set():
                return

    async def _wait_for_news(self) -> None:
        """A draft passes by itself, so it is shown again in time."""
        again = anyio.current_time() + (self._settings.draft_lasts if self._is_drafted else math.inf)
        while not self._news.is_set() and anyio.current_time() < again:
            with anyio.CancelScope(deadline=min(again, self._gone_at)):
                await self._news.wait()
            if anyio.current_time() >= self._gone_at:
                self.rest()
        self._news = anyio.Event()

    async def _wait_for_earlier_replies(self) -> None:
        """Waits until what was owed to the place before has gone out, or nobody wants to see the stream any more."""
        while self._ids is None and not self._closing.is_set() and await has_owed_replies(self._engine, self._place):
            await self._wait_or_close(self._settings.edit_pause)

    async def _try_to_show(self, reply: Reply) -> None:
        before, self.shown = self.shown, None
        try:
            self.shown = await self._show_parts(reply, before)
            self._failures, self.shown_at = 0, anyio.current_time()
        except AdapterError as error:
            if error.retry_after:  # nothing was done
                self.shown = before
                self._news.set()
            self._failures = MAX_FAILURES if error.permanent else self._failures + 1
            log.info("a piece of reply %s is not shown: %s", reply.id, error)
            await self._wait_or_close(error.retry_after or self._settings.edit_pause)
        except EngineError as error:
            self._failures += 1
            log.info("a piece of reply %s is not shown: %s", reply.id, error)
        except Exception:  # an SDK's own fault; the delivery will show it to whom it concerns
            self._failures = MAX_FAILURES
            log.exception("reply %s is no longer shown while it is written", reply.id)

    async def _show_parts(self, reply: Reply, before: Reply | None) -> Reply | None:
        """Lets the last part that is shown grow, and sends further ones; returns what is shown, if all of it is."""
        ids, count = await self._load(), self._transport.texts(reply)
        is_whole = len(ids) < 2 or (before is not None and reply.text.startswith(before.text))
        for part in range(max(0, len(ids) - 1), count):
            is_last, self._is_drafted = part == count - 1, False
            if part == len(ids):
                if is_last and await self._draft(reply, part):
                    break
                ids = await self._begin(reply, part, ids)
                before = reply
            elif is_last:
                await self._transport.grow(reply, part, ids[part], before)
            if not is_last and part >= self._finished:
                await self._transport.finish(reply, part, ids[part], before)
                self._finished = part + 1
        return reply if is_whole and count >= len(ids) else None

    async def _draft(self, reply: Reply, part: int) -> bool:
        if self._transport.capability(reply.address).can_draft:
            self._is_drafted = await self._transport.draft(reply, part)
        return self._is_drafted

    async def _begin(self, reply: Reply, part: int, ids: MessageIds) -> MessageIds:
        intent = records.SendIntent(out=0, reply_id=reply.id, part=part, message_ids=ids)
        await write_shown_part(self._engine, self._place, intent)
        with anyio.CancelScope(shield=True):
            ids = self._ids = (*ids, await self._transport.begin(reply, part, nonce_of(reply.id, part)))
            shown = records.SendSucceeded(out=0, reply_id=reply.id, part=part, message_ids=ids, last=False)
            await write_shown_part(self._engine, self._place, shown)
        return ids

    async def _end_growing(self) -> None:
        """Nobody delivers it now: its turn waits for somebody, or has no more to say."""
        try:
            if ids := await self._load():
                await self._transport.close(self.reply.address, ids[-1])
        except (AdapterError, EngineError) as error:
            log.info("what is shown of reply %s is not ended: %s", self.reply.id, error)

    async def _load(self) -> MessageIds:
        """The ids of what is shown, at first those of an earlier run of the same turn."""
        ids = self._ids
        if ids is None:
            ids = self._ids = await find_shown_parts(self._engine, self._transport, self.reply)
        return ids

    async def _wait_or_close(self, seconds: float) -> None:
        """Keeps to the network's pace, except that a close need not wait for it."""
        with anyio.move_on_after(seconds):
            await self._closing.wait()


async def find_shown_parts(engine: Engine, transport: Transport, reply: Reply) -> MessageIds:
    """The ids of what a stream of this reply has shown, in this life or another.

    What the network was asked for is written down: once it has grown or was ended, it may not be found there again.
    """
    place = subjects.place_of(reply.address)
    last = await read_shown_part(engine, place, reply.id)
    if last is None:
        return ()
    if isinstance(last, records.SendIntent) and transport.doubt == "lookup":
        if not (found := await transport.find_begun(reply, last.part, nonce_of(reply.id, last.part))):
            return last.message_ids
        ids = (*last.message_ids, found)
        shown = records.SendSucceeded(out=0, reply_id=reply.id, part=last.part, message_ids=ids, last=False)
        await write_shown_part(engine, place, shown)
        return ids
    return last.message_ids


async def write_shown_part(engine: Engine, place: str, kept: records.SendIntent | records.SendSucceeded) -> None:
    """In the send journal of its own that a stream of this reply has there."""
    subject = subjects.send_subject_of(place, kept.reply_id)
    await engine.append(NewRecord(subject, records.encode(kept), ttl=records.DAY))


async def is_reply_owed(engine: Engine, reply: Reply, claimed: int) -> bool:
    """Asks whether it is owed or was sent behind the sequence of a claim; an ill journal says yes: nothing is shown."""
    pattern = subjects.reply_pattern_of_place(subjects.place_of(reply.address))
    try:
        found = [kept.reply.id async for _, kept in records.read_all(engine, pattern, records.OwedReply, claimed)]
    except EngineError:
        return True
    return reply.id in found


async def has_owed_replies(engine: Engine, place: str) -> bool:
    """Asks whether a reply waits that is not settled; an ill journal is no reason to go before others."""
    try:
        settled = (await read_position(engine, place)).upto
        return bool(await records.read_readable(engine, subjects.reply_pattern_of_place(place), settled, 1))
    except EngineError:
        return True
