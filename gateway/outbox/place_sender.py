"""One place's replies, in their order, each part after the other.

Before a call that sends there is an `Intent` in the place's send journal, after it a `Sent`; both are appended with
the journal's last sequence, so a second sender of the same place is fenced. Between the two a crash leaves a doubt
about one part, which the network's policy settles. A reply that waits for its next try holds back those behind it, and
nobody in other places; one that is refused for good lets them pass.
"""

import logging

import anyio
from anyio.lowlevel import checkpoint

from gateway import records
from gateway.engine.interface import Record
from gateway.engine.keyed_workers import Wakeup
from gateway.errors import AdapterError, Conflict, EngineError, describe_error
from gateway.messages import Reply
from gateway.outbox.interface import DeliveryReport, ReplyWithheld
from gateway.outbox.platform_sender import PlatformSender
from gateway.outbox.send_journal import MessageIds, SendJournal

log = logging.getLogger(__name__)

PAGE_SIZE = 50
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 15.0


class PlaceSender:
    """Delivers to one place while there is something to deliver."""

    def __init__(self, where: str, desk: PlatformSender) -> None:
        self.bell = Wakeup()
        self.is_over = False
        self.is_pausing = False
        self._where = where
        self._desk = desk
        self._ledger = SendJournal(desk.engine, where, desk.clock)
        self._scope = anyio.CancelScope()

    def finish(self) -> None:
        self._scope.cancel()

    async def run(self) -> None:
        pause = FIRST_PAUSE
        with self._scope:
            while not self.is_over:
                try:
                    await self._pass()
                    pause = FIRST_PAUSE
                except Exception:  # an ill journal, a second sender, a fault of ours: the replies are kept, we go on
                    log.exception("replies to %s wait %.1f s", self._where, pause)
                    self._ledger.is_loaded = False
                    await self._rest(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)

    async def _pass(self) -> None:
        self.bell.listen()
        if not self._ledger.is_loaded:
            await self._ledger.load()
        waiting = await self._desk.engine.read(
            records.reply_pattern_of_place(self._where), self._ledger.at.upto, PAGE_SIZE
        )
        for record in waiting:
            await self._deliver(record)
        if not waiting:
            self.is_over = not self.bell.has_news

    async def _deliver(self, record: Record) -> None:
        outbound = records.decode(record.data)
        assert isinstance(outbound, records.OwedReply)
        at, now, settings = self._ledger.at, self._desk.clock(), self._desk.settings
        if at.out == record.seq:
            await self._rest(min(max(at.retry_at - now, 0), settings.longest_pause))
        else:
            self._ledger.begin(record.seq)
            if at.strikes >= settings.strikes and now < at.retry_at:
                chat = f"{outbound.reply.address.platform} chat {outbound.reply.address.chat_id}"
                error = f"{chat} refused {at.strikes} replies in a row and is tried rarely; this one was not tried"
                await self._end(outbound, error, attempts=0, retry_at=at.retry_at)
                return
        parcel = ReplyDelivery(outbound, record, self._where, self._ledger, self._desk)
        while (failure := await self._try(parcel)) is not None:
            if self._is_final(parcel, failure):
                await self._give_up(parcel, failure)
                return
            await self._wait(parcel, failure)

    async def _try(self, parcel: "ReplyDelivery") -> Exception | None:
        """One try at what is left of a reply; what went wrong, if something did."""
        self.is_pausing = not self._desk.is_open
        await self._desk.opened()
        self.is_pausing = False
        try:
            await parcel.send()
        except (Conflict, EngineError):
            raise
        except (AdapterError, ReplyWithheld) as error:
            return error
        except Exception as error:  # an SDK's own fault, which says nothing about the network
            log.exception("sending to %s failed", self._where)
            return error
        return None

    def _is_final(self, parcel: "ReplyDelivery", error: Exception) -> bool:
        settings, attempts = self._desk.settings, self._ledger.at.attempts + 1
        if self._desk.clock() - parcel.since > settings.give_up:
            return True
        if isinstance(error, AdapterError):
            return error.permanent or (error.retry_after is None and parcel.is_refused_alone())
        return isinstance(error, ReplyWithheld) or attempts >= settings.odd_attempts

    async def _wait(self, parcel: "ReplyDelivery", error: Exception) -> None:
        """Note the failed try, and rest until the next."""
        retry_after = error.retry_after if isinstance(error, AdapterError) else None
        pause = self._desk.pause(self._ledger.at.attempts + 1, retry_after)
        log.info("reply %s to %s waits %.1f s: %s", parcel.outbound.reply.id, self._where, pause, error)
        await self._ledger.again(parcel.outbound.reply.id, describe_error(error), self._desk.clock() + pause)
        await self._rest(pause)

    async def _give_up(self, parcel: "ReplyDelivery", error: Exception) -> None:
        """The end of a reply that is not sent. A refusal by the network is a strike against the place."""
        is_strike = isinstance(error, AdapterError) and error.permanent
        strikes = self._ledger.at.strikes + is_strike
        is_dead = strikes >= self._desk.settings.strikes
        retry_at = self._desk.clock() + self._desk.settings.rarely if is_dead else 0.0
        attempts = self._ledger.at.attempts + (not isinstance(error, ReplyWithheld))
        await self._end(
            parcel.outbound, describe_error(error), attempts=attempts, is_strike=is_strike, retry_at=retry_at
        )

    async def _end(
        self, outbound: records.OwedReply, error: str, *, attempts: int, retry_at: float, is_strike: bool = False
    ) -> None:
        log.warning("reply %s to %s is given up: %s", outbound.reply.id, self._where, error)
        ids = self._ledger.at.ids
        await self._ledger.give_up(outbound.reply.id, error, attempts, self._ledger.at.strikes + is_strike, retry_at)
        self._desk.report_failed(DeliveryReport(outbound, outbound.reply, ids, attempts, error))

    async def _rest(self, seconds: float) -> None:
        self.is_pausing = True
        await anyio.sleep(seconds)
        self.is_pausing = False


class ReplyDelivery:
    """One reply on its way; it remembers over its tries what the interceptors made of it."""

    def __init__(
        self, outbound: records.OwedReply, record: Record, where: str, ledger: SendJournal, desk: PlatformSender
    ) -> None:
        self.outbound = outbound
        self.since = outbound.at or record.ts
        self._where = where
        self._ledger = ledger
        self._desk = desk
        self._reply: Reply | None = None
        self._shown: MessageIds | None = None
        self._refused_at = 0.0

    def is_refused_alone(self) -> bool:
        """Whether it fails for long while the network takes what goes elsewhere."""
        now = self._desk.clock()
        self._refused_at = self._refused_at or now
        half = self._refused_at + self._desk.settings.stubborn / 2
        return now - self._refused_at >= self._desk.settings.stubborn and self._desk.arrived_at >= half

    async def send(self) -> None:
        """The parts that are not sent yet; then the delivery is told."""
        if self._shown is None:
            self._shown = await self._desk.shown(self._where, self.outbound)
        reply = self._reply = self._reply or await self._desk.told.prepare(self.outbound)
        count, attempts = self._desk.carrier.parts(reply), self._ledger.at.attempts + 1
        ids = self._ledger.at.ids
        for part in range(self._ledger.at.part, count):
            ids = (*ids, await self._send_part(reply, part, self._shown, is_last=part == count - 1))
        if self._ledger.at.upto < self._ledger.at.out:
            await self._ledger.write_nothing_to_send(reply.id)
        await self._tidy(reply, count, self._shown)
        self._desk.report_sent(DeliveryReport(self.outbound, reply, ids, attempts))

    async def _send_part(self, reply: Reply, part: int, shown: MessageIds, *, is_last: bool) -> tuple[str, ...]:
        """One part, from intent to sent; once the call has begun, a shutdown lets it end."""
        ids: tuple[str, ...] = ()
        async with self._desk.senders:
            with self._desk.shield_call() as call:
                ids = await self._reach(reply, part, shown)
                await self._ledger.sent(reply.id, part, ids, is_last=is_last)
        if call.cancelled_caught:
            await checkpoint()  # the shutdown that cut the call off ends this route too
            raise EngineError(f"the call that sends reply {reply.id} was cut off")
        return ids

    async def _reach(self, reply: Reply, part: int, shown: MessageIds) -> tuple[str, ...]:
        """Get a part to the network: by an edit where it is shown already, by a look where it may be, or by a send."""
        carrier, at, nonce = self._desk.carrier, self._ledger.at, records.token_of(f"{reply.id}:{part}")
        if part < len(shown) and await self._edit(reply, part, shown[part]):
            return shown[part]
        if at.in_doubt and carrier.doubt == "drop":
            log.warning("part %d of reply %s may have arrived before the restart; it is let be", part, reply.id)
            return ()
        if carrier.doubt == "lookup" and (at.in_doubt or at.attempts):
            found = await carrier.find(reply, part, nonce)
            if found is not None:
                return found
        if carrier.doubt != "none":
            await self._ledger.write_intent(reply.id, part)
        return await carrier.send(reply, part, nonce)

    async def _edit(self, reply: Reply, part: int, ids: tuple[str, ...]) -> bool:
        """Whether what the stream showed could be made the reply; when it was deleted meanwhile, it must be sent."""
        try:
            await self._desk.carrier.edit(reply, part, ids)
        except AdapterError as error:
            if not error.permanent:
                raise
            log.info("the placeholder of reply %s is gone, it is sent anew: %s", reply.id, error)
            return False
        return True

    async def _tidy(self, reply: Reply, count: int, shown: MessageIds) -> None:
        """Away with what the stream showed beyond the reply, and with its notes."""
        for ids in shown[count:]:
            try:
                await self._desk.carrier.delete(reply.address, ids)
            except AdapterError as error:
                log.info("a superfluous part of reply %s stays: %s", reply.id, error)
        if shown:
            await self._desk.purge_stream(self._where, reply.id)
