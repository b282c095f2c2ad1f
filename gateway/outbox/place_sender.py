"""The replies of one place, in order, part after part.

A worker exists for a place while replies are pending there (see `keyed_workers`). In each pass it reads the journal
after the place's position, and delivers the replies in order. A reply that waits for its next try holds back those
behind it, and none in other places; a cancelled reply lets them pass.

A delivery starts in one of two ways. If the send journal shows that this reply was started (`position.out` is its
sequence), it is resumed at its part, after the rest of its pause. Otherwise it starts at the first part. A place that
has refused too many replies in a row counts as dead until `retry_at`, and a new reply for it fails untried.

The way of one part to the network; the first line that applies decides:

    part is shown by the stream      make it show the part, and end its growth; if it is gone, continue below
    doubt policy   after a crash between call and record, or another try
    drop           after a crash: count it as sent, without ids; else as for resend
    lookup         ask the network for it first; if it is not found, send it after an intent
    nonce, resend  an intent, then the call; with `nonce` the network drops the second of two
    none           the call alone: no one sees it twice, so no intent is written

The intent counts the attempt, so a process that dies in the call has used one up.
"""

import dataclasses
import logging
from collections.abc import Awaitable

import anyio
import msgspec
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from gateway.backoff import Attempts, Backoff
from gateway.engine.interface import Record
from gateway.engine.keyed_workers import Wakeup
from gateway.errors import AdapterError, Conflict, EngineError, EngineTooNew, describe_error
from gateway.messages.message import Reply
from gateway.outbox.interface import DeliveryReport, MessageIds, ReplyWithheld, nonce_of
from gateway.outbox.platform_sender import PlatformSender, StreamedParts
from gateway.outbox.send_journal import SendJournal
from gateway.records import records, subjects

log = logging.getLogger(__name__)

PAGE_SIZE = 50
FAULT_BACKOFF = Backoff(0.25, 15.0)
CONTENTION_BACKOFF = Backoff(0.01, 15.0)


class PlaceSender:
    """The sender of one place while replies are pending there."""

    def __init__(self, place: str, platform: PlatformSender) -> None:
        self.wakeup = Wakeup()
        self.is_over = False
        self._place = place
        self._platform = platform
        self._journal = SendJournal(platform.engine, place, platform.clock)
        self._scope = anyio.CancelScope()

    def finish(self) -> None:
        self._scope.cancel()

    async def run(self) -> None:
        """Deliver until nothing is left.

        A fault of the journal or of our code loses no reply: delivery continues, more slowly.

        Raises:
            EngineTooNew: a later version of the gateway wrote the next reply.
        """
        faults, contended = Attempts(FAULT_BACKOFF), Attempts(CONTENTION_BACKOFF)
        with self._scope:
            while not self.is_over:
                try:
                    await self._pass()
                    faults.reset()
                    contended.reset()
                except EngineTooNew:
                    raise
                except Conflict:  # another gateway sends here too: its messages are skipped
                    self._journal.is_loaded = False
                    await anyio.sleep(contended.pause())
                except Exception:  # an ill journal, or a bug of ours: the replies are kept
                    pause = faults.pause()
                    log.exception("replies to %s wait %.1f s", self._place, pause)
                    self._journal.is_loaded = False  # the known state of the place may be wrong: it is read again
                    await self._rest(pause)

    async def _pass(self) -> None:
        self.wakeup.listen()
        if not self._journal.is_loaded:
            await self._journal.load()
        pattern, upto = subjects.reply_pattern_of_place(self._place), self._journal.position.upto
        waiting = await self._platform.engine.read(pattern, upto, PAGE_SIZE, fresh=False)
        for record in waiting:
            await self._deliver(record)
        if not waiting:
            self.is_over = not self.wakeup.has_news

    async def _deliver(self, record: Record) -> None:
        outbound = records.decode(record.data)
        assert isinstance(outbound, records.OwedReply)
        at, now, settings = self._journal.position, self._platform.clock(), self._platform.settings
        self._journal.owed_on = record.subject
        if at.out == record.seq:
            await self._rest(min(max(at.retry_at - now, 0), settings.longest_pause))
        else:
            self._journal.begin(record.seq)
            if at.strikes >= settings.strikes and now < at.retry_at:
                chat = f"{outbound.reply.address.platform} chat {outbound.reply.address.chat_id}"
                error = f"{chat} refused {at.strikes} replies in a row and is tried rarely; this one was not tried"
                await self._end(outbound, error, attempts=0, retry_at=at.retry_at)
                return
        delivery = ReplyDelivery(outbound, record, self._place, self._journal, self._platform)
        while (failure := await self._try(delivery)) is not None:
            if self._is_final(delivery, failure):
                await delivery.end_growing()
                await self._give_up(outbound, failure)
                return
            await self._wait(outbound, failure)

    async def _try(self, delivery: "ReplyDelivery") -> Exception | None:
        """Try once to send the rest of a reply; return the error, if any."""
        try:
            await delivery.send()
        except (Conflict, EngineError):
            raise  # no fault of the network: `run` reads the journal again
        except Exception as error:
            if not isinstance(error, AdapterError | ReplyWithheld):
                # An SDK's own fault, which says nothing about the network.
                log.exception("sending to %s failed", self._place)
            return error
        return None

    def _is_final(self, delivery: "ReplyDelivery", error: Exception) -> bool:
        settings, attempts = self._platform.settings, self._journal.position.attempts + 1
        if self._platform.clock() - delivery.since > settings.give_up:
            return True
        if isinstance(error, AdapterError):
            return error.permanent or (error.retry_after is None and delivery.is_refused_alone())
        return isinstance(error, ReplyWithheld) or attempts >= settings.odd_attempts

    async def _wait(self, outbound: records.OwedReply, error: Exception) -> None:
        """Record the failed try, and wait for the next."""
        at, reply_id, words = self._journal.position, outbound.reply.id, describe_error(error)
        attempts = at.attempts + 1
        pause = self._platform.next_pause(attempts, error.retry_after if isinstance(error, AdapterError) else None)
        log.info("reply %s to %s waits %.1f s: %s", reply_id, self._place, pause, error)
        retry_at = self._platform.clock() + pause
        failed = records.SendFailed(out=at.out, reply_id=reply_id, error=words, attempts=attempts, permanent=False)
        await self._journal.write_failure(replace(failed, strikes=at.strikes, retry_at=retry_at))
        await self._rest(pause)

    async def _give_up(self, outbound: records.OwedReply, error: Exception) -> None:
        """Cancel a reply. A refusal by the network is a strike against the place."""
        at, settings = self._journal.position, self._platform.settings
        strike = isinstance(error, AdapterError) and error.permanent
        is_dead = at.strikes + strike >= settings.strikes
        retry_at = self._platform.clock() + settings.rarely if is_dead else 0.0
        attempts = at.attempts + (not isinstance(error, ReplyWithheld))
        await self._end(outbound, describe_error(error), attempts=attempts, retry_at=retry_at, strike=strike)

    async def _end(
        self, outbound: records.OwedReply, error: str, *, attempts: int, retry_at: float, strike: bool = False
    ) -> None:
        at, reply = self._journal.position, outbound.reply
        log.warning("reply %s to %s is cancelled: %s", reply.id, self._place, error)
        failed = records.SendFailed(out=at.out, reply_id=reply.id, error=error, attempts=attempts)
        report = DeliveryReport(outbound, reply, at.ids, attempts, error)
        owed = self._platform.list_owed(report)
        await self._journal.write_failure(replace(failed, strikes=at.strikes + strike, retry_at=retry_at), owed)
        self._platform.report(self._platform.callbacks.failed, report)

    async def _rest(self, seconds: float) -> None:
        self._platform.pausing += 1
        try:
            await anyio.sleep(seconds)
        finally:
            self._platform.pausing -= 1


class ReplyDelivery:
    """The delivery of one reply; over its tries it keeps the prepared reply, and what the stream had displayed."""

    def __init__(
        self, outbound: records.OwedReply, record: Record, place: str, journal: SendJournal, platform: PlatformSender
    ) -> None:
        self.outbound = outbound
        self.since = outbound.at or record.ts
        self._place = place
        self._journal = journal
        self._platform = platform
        self._reply: Reply | None = None
        self._shown: StreamedParts | None = None
        self._refused_at = 0.0

    def is_refused_alone(self) -> bool:
        """Return True if it has failed for long while the network took messages to other places."""
        now = self._platform.clock()
        self._refused_at = self._refused_at or now
        half = self._refused_at + self._platform.settings.stubborn / 2
        return now - self._refused_at >= self._platform.settings.stubborn and self._platform.arrived_at >= half

    async def send(self) -> None:
        """Send the remaining parts, then report the delivery."""
        if self._shown is None:
            self._shown = await self._platform.end_stream(self.outbound)
        reply = self._reply or await self._platform.callbacks.prepare(self.outbound)
        reply = self._reply = dataclasses.replace(reply, is_streamed=bool(self._shown.ids))
        count, attempts = self._platform.transport.parts(reply), self._journal.position.attempts + 1
        ids = self._journal.position.ids
        report = DeliveryReport(self.outbound, reply, ids, attempts)
        for part in range(self._journal.position.part, count):
            report = await self._send_part(report, part, self._shown, is_last=part == count - 1)
        if self._journal.position.out > self._journal.position.upto:
            if self.outbound.reply.is_empty:
                await self._tidy(reply, self._shown.ids, is_final=False)
            await self._journal.write_nothing_to_send(reply.id, self._platform.list_owed(report))
        await self._tidy(reply, self._shown.ids)
        self._platform.arrived_at = self._platform.clock()
        self._platform.report(self._platform.callbacks.sent, report)

    async def _send_part(
        self, report: DeliveryReport, part: int, shown: StreamedParts, *, is_last: bool
    ) -> DeliveryReport:
        """Send one part, from intent to success; a shutdown lets a running call end.

        The shield also covers the records before and after the call: if the wait for the second one were cut off, a
        part that arrived would be in doubt.
        """
        reply = report.reply
        async with self._platform.calls:
            with self._platform.shield_call() as call:
                ids = await self._reach(reply, part, shown)
                report = msgspec.structs.replace(report, message_ids=(*report.message_ids, ids))
                owed = self._platform.list_owed(report) if is_last else ()
                await self._journal.write_sent(reply.id, part, ids, is_last=is_last, owed=owed)
        if call.cancelled_caught:
            # The shutdown's deadline ended the call. The cancellation that started the shutdown is behind the shield
            # and ends this worker at the checkpoint; without one, the journal is read again, and says "in doubt".
            await checkpoint()
            raise EngineError(f"the call that sends reply {reply.id} was cut off")
        return report

    async def _reach(self, reply: Reply, part: int, shown: StreamedParts) -> tuple[str, ...]:
        """Send a part by the table at the top, and return its ids."""
        transport, at, nonce = self._platform.transport, self._journal.position, nonce_of(reply.id, part)
        if part < min(len(shown.ids), transport.texts(reply)) and await self._complete(reply, part, shown):
            return shown.ids[part]
        if at.in_doubt and transport.doubt == "drop":
            log.warning("part %d of reply %s may have arrived before the restart; it is let be", part, reply.id)
            return ()
        if transport.doubt == "lookup" and (at.in_doubt or at.attempts):
            found = await transport.find(reply, part, nonce)
            if found is not None:
                return found
        if transport.doubt != "none":
            await self._journal.write_intent(reply.id, part)
        return await transport.send(reply, part, nonce)

    async def _complete(self, reply: Reply, part: int, shown: StreamedParts) -> bool:
        """Turn the displayed stream into the reply; return False if it was deleted meanwhile, and must be sent."""
        transport, ids = self._platform.transport, shown.ids[part]
        try:
            if part == len(shown.ids) - 1:
                await transport.finish(reply, part, ids, shown.reply)
            elif shown.reply is None or shown.reply.text != reply.text or reply.buttons:
                await transport.edit(reply, part, ids)
        except AdapterError as error:
            if not error.permanent:
                raise
            log.info("the placeholder of reply %s is gone, it is sent again: %s", reply.id, error)
            return False
        return True

    async def end_growing(self) -> None:
        """End the growth of what the stream has displayed, because the reply is not sent."""
        if self._shown and self._shown.ids:
            await self._try(self._platform.transport.close(self.outbound.reply.address, self._shown.ids[-1]))

    async def _tidy(self, reply: Reply, shown: MessageIds, *, is_final: bool = True) -> None:
        """Delete what the stream displayed beyond the reply's text, and its journal.

        If not `is_final`, raise AdapterError when another try may succeed.
        """
        superfluous = shown[self._platform.transport.texts(reply) :]
        if superfluous:
            await self._try(self._platform.transport.close(reply.address, superfluous[-1]))
        for ids in superfluous:
            await self._try(self._platform.transport.delete(reply.address, ids), is_final=is_final)
        if shown:
            await self._platform.engine.purge(subjects.send_subject_of(self._place, reply.id))

    async def _try(self, call: Awaitable[None], *, is_final: bool = True) -> None:
        """Ignore errors of a call that deserves no second try; if not `is_final`, only permanent ones."""
        try:
            await call
        except AdapterError as error:
            if not (is_final or error.permanent):
                raise
            log.info("something shown of reply %s stays as it is: %s", self.outbound.reply.id, error)
