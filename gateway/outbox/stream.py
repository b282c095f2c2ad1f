"""An answer that is shown while it is written: a placeholder, then edits of it.

The ids of what is shown stand in a small send journal of the reply's own, keyed by the reply's id, with `out` 0 because
the reply itself is not in the journal yet. So whoever delivers the finished reply, after a crash too, makes the
placeholder the reply instead of sending it a second time; and a turn that runs again goes on in the same placeholder.

Nothing is shown of an answer that is whole soon after it began: it is sent once, as if nobody had streamed it.

Showing is best effort: what fails here is left to the delivery, and after MAX_FAILURES in a row no more is shown.
A placeholder is a message in its place like every other: it does not appear before those that were owed earlier.
"""

import logging
from dataclasses import replace

import anyio

from gateway import record_subjects, records
from gateway.engine.interface import Engine, NewRecord
from gateway.errors import AdapterError, EngineError
from gateway.messages import Reply
from gateway.outbox.interface import MessageIds, OutboxSettings, Transport, nonce_of
from gateway.outbox.send_journal import position_from, read_shown_part

log = logging.getLogger(__name__)

MAX_FAILURES = 3


class Stream:
    """Shows a reply as it grows. `add` is plain, so that no network can slow the writer down.

    `shown` is the text that the network shows whole; None: none, or nobody knows.
    """

    def __init__(self, reply: Reply, engine: Engine, transport: Transport, settings: OutboxSettings) -> None:
        self.reply = reply
        self.shown: str | None = None
        self._engine = engine
        self._transport = transport
        self._pause = settings.edit_pause
        self._delay = settings.stream_after
        self._place = record_subjects.place_of(reply.address)
        self._subject = record_subjects.send_subject_of(self._place, reply.id)
        self._text = ""
        self._ids: MessageIds | None = None
        self._failures = 0
        self._news = anyio.Event()
        self._closing = anyio.Event()
        self._ended = anyio.Event()

    def add(self, text: str, *, anew: bool = False) -> None:
        """Go on with this text, or begin `anew` with it; what comes within the network's pace is shown together."""
        self._text = text if anew else self._text + text
        self._news.set()

    async def close(self) -> None:
        """Show no more; returns when no call is under way."""
        self._closing.set()
        self._news.set()
        await self._ended.wait()

    async def run(self) -> None:
        try:
            await self._news.wait()
            await self._wait_or_close(self._delay)
            while not self._closing.is_set() and self._failures < MAX_FAILURES:
                await self._news.wait()
                self._news = anyio.Event()
                await self._wait_for_earlier_replies()
                if self._text and not self._closing.is_set():
                    await self._try_to_show(replace(self.reply, text=self._text))
                    await self._wait_or_close(self._pause)
        finally:
            self._ended.set()

    async def _wait_for_earlier_replies(self) -> None:
        """Waits until what was owed to the place before has gone out, or nobody wants to see the stream any more."""
        while self._ids is None and not self._closing.is_set() and await self._has_earlier_replies():
            await self._wait_or_close(self._pause)

    async def _has_earlier_replies(self) -> bool:
        """Asks whether a reply waits that is not settled; an ill journal is no reason to go before others."""
        try:
            settled = position_from(await self._engine.last(record_subjects.send_subject_of(self._place))).upto
            return bool(await self._engine.read(record_subjects.reply_pattern_of_place(self._place), settled, 1))
        except EngineError:
            return True

    async def _try_to_show(self, reply: Reply) -> None:
        self.shown = None
        try:
            await self._show_parts(reply)
            self.shown = reply.text
            self._failures = 0
        except AdapterError as error:
            self._failures = MAX_FAILURES if error.permanent else self._failures + 1
            log.info("a piece of reply %s is not shown: %s", reply.id, error)
            await self._wait_or_close(error.retry_after or self._pause)
        except EngineError as error:
            self._failures += 1
            log.info("a piece of reply %s is not shown: %s", reply.id, error)
        except Exception:  # an SDK's own fault; the delivery will show it to whom it concerns
            self._failures = MAX_FAILURES
            log.exception("reply %s is no longer shown while it is written", reply.id)

    async def _show_parts(self, reply: Reply) -> None:
        """Edits the last part that is shown, and sends further ones."""
        if self._ids is None:
            # What an earlier run of the same turn has shown already.
            shown = await read_shown_part(self._engine, self._place, reply.id)
            self._ids = shown.message_ids if shown else ()
        for part in range(max(0, len(self._ids) - 1), self._transport.texts(reply)):
            if part < len(self._ids):
                await self._transport.edit(reply, part, self._ids[part])
            else:
                await self._send(reply, part, self._ids)

    async def _send(self, reply: Reply, part: int, ids: MessageIds) -> None:
        await self._write(records.SendIntent(out=0, reply_id=reply.id, part=part, message_ids=ids))
        with anyio.CancelScope(shield=True):
            new = await self._transport.send(reply, part, nonce_of(reply.id, part))
            self._ids = (*ids, new)
            await self._write(
                records.SendSucceeded(out=0, reply_id=reply.id, part=part, message_ids=self._ids, last=False)
            )

    async def _write(self, kept: records.SendIntent | records.SendSucceeded) -> None:
        await self._engine.append(NewRecord(self._subject, records.encode(kept), ttl=records.DAY))

    async def _wait_or_close(self, seconds: float) -> None:
        """Keeps to the network's pace, except that a close need not wait for it."""
        with anyio.move_on_after(seconds):
            await self._closing.wait()
