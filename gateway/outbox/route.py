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
from gateway.engine.doors import Doorbell
from gateway.engine.interface import Record
from gateway.errors import AdapterError, Conflict, EngineError
from gateway.messages import Reply
from gateway.outbox.desk import Desk
from gateway.outbox.ledger import Ledger
from gateway.outbox.position import Ids
from gateway.outbox.settings import Delivery, Withheld

log = logging.getLogger(__name__)

PAGE = 50
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 15.0


class Route:
    """Delivers to one place while there is something to deliver."""

    def __init__(self, where: str, desk: Desk) -> None:
        self.bell = Doorbell()
        self.is_over = False
        self.is_pausing = False
        self._where = where
        self._desk = desk
        self._ledger = Ledger(desk.engine, where, desk.clock)
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
        waiting = await self._desk.engine.read(records.out_of_place(self._where), self._ledger.at.upto, PAGE)
        for record in waiting:
            await self._deliver(record)
        if not waiting:
            self.is_over = not self.bell.is_news

    async def _deliver(self, record: Record) -> None:
        outbound = records.decode(record.data)
        assert isinstance(outbound, records.Outbound)
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
        parcel = Parcel(outbound, record, self._where, self._ledger, self._desk)
        while (failure := await self._try(parcel)) is not None:
            if self._is_final(parcel, failure):
                await self._give_up(parcel, failure)
                return
            await self._wait(parcel, failure)

    async def _try(self, parcel: "Parcel") -> Exception | None:
        """One try at what is left of a reply; what went wrong, if something did."""
        self.is_pausing = not self._desk.is_open
        await self._desk.opened()
        self.is_pausing = False
        try:
            await parcel.send()
        except (Conflict, EngineError):
            raise
        except (AdapterError, Withheld) as error:
            return error
        except Exception as error:  # an SDK's own fault, which says nothing about the network
            log.exception("sending to %s failed", self._where)
            return error
        return None

    def _is_final(self, parcel: "Parcel", error: Exception) -> bool:
        settings, attempts = self._desk.settings, self._ledger.at.attempts + 1
        if self._desk.clock() - parcel.since > settings.give_up:
            return True
        if isinstance(error, AdapterError):
            return error.permanent or (error.retry_after is None and parcel.is_alone_refused())
        return isinstance(error, Withheld) or attempts >= settings.odd_attempts

    async def _wait(self, parcel: "Parcel", error: Exception) -> None:
        """Note the failed try, and rest until the next."""
        retry_after = error.retry_after if isinstance(error, AdapterError) else None
        pause = self._desk.pause(self._ledger.at.attempts + 1, retry_after)
        log.info("reply %s to %s waits %.1f s: %s", parcel.outbound.reply.id, self._where, pause, error)
        await self._ledger.again(parcel.outbound.reply.id, said(error), self._desk.clock() + pause)
        await self._rest(pause)

    async def _give_up(self, parcel: "Parcel", error: Exception) -> None:
        """The end of a reply that is not sent. A refusal by the network is a strike against the place."""
        is_strike = isinstance(error, AdapterError) and error.permanent
        strikes = self._ledger.at.strikes + is_strike
        is_dead = strikes >= self._desk.settings.strikes
        retry_at = self._desk.clock() + self._desk.settings.rarely if is_dead else 0.0
        attempts = self._ledger.at.attempts + (not isinstance(error, Withheld))
        await self._end(parcel.outbound, said(error), attempts=attempts, is_strike=is_strike, retry_at=retry_at)

    async def _end(
        self, outbound: records.Outbound, error: str, *, attempts: int, retry_at: float, is_strike: bool = False
    ) -> None:
        log.warning("reply %s to %s is given up: %s", outbound.reply.id, self._where, error)
        ids = self._ledger.at.ids
        await self._ledger.give_up(outbound.reply.id, error, attempts, self._ledger.at.strikes + is_strike, retry_at)
        self._desk.tell_failed(Delivery(outbound, outbound.reply, ids, attempts, error))

    async def _rest(self, seconds: float) -> None:
        self.is_pausing = True
        await anyio.sleep(seconds)
        self.is_pausing = False


class Parcel:
    """One reply on its way; it remembers over its tries what the interceptors made of it."""

    def __init__(self, outbound: records.Outbound, record: Record, where: str, ledger: Ledger, desk: Desk) -> None:
        self.outbound = outbound
        self.since = outbound.at or record.ts
        self._where = where
        self._ledger = ledger
        self._desk = desk
        self._reply: Reply | None = None
        self._shown: Ids | None = None
        self._refused_at = 0.0

    def is_alone_refused(self) -> bool:
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
            await self._ledger.nothing_to_send(reply.id)
        await self._tidy(reply, count, self._shown)
        self._desk.tell_sent(Delivery(self.outbound, reply, ids, attempts))

    async def _send_part(self, reply: Reply, part: int, shown: Ids, *, is_last: bool) -> tuple[str, ...]:
        """One part, from intent to sent; once the call has begun, a shutdown lets it end."""
        ids: tuple[str, ...] = ()
        async with self._desk.senders:
            with self._desk.shielded() as call:
                ids = await self._reach(reply, part, shown)
                await self._ledger.sent(reply.id, part, ids, is_last=is_last)
        if call.cancelled_caught:
            await checkpoint()  # the shutdown that cut the call off ends this route too
            raise EngineError(f"the call that sends reply {reply.id} was cut off")
        return ids

    async def _reach(self, reply: Reply, part: int, shown: Ids) -> tuple[str, ...]:
        """Get a part to the network: by an edit where it is shown already, by a look where it may be, or by a send."""
        carrier, at, nonce = self._desk.carrier, self._ledger.at, records.token(f"{reply.id}:{part}")
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
            await self._ledger.intend(reply.id, part)
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

    async def _tidy(self, reply: Reply, count: int, shown: Ids) -> None:
        """Away with what the stream showed beyond the reply, and with its notes."""
        for ids in shown[count:]:
            try:
                await self._desk.carrier.delete(reply.address, ids)
            except AdapterError as error:
                log.info("a superfluous part of reply %s stays: %s", reply.id, error)
        if shown:
            await self._desk.forget_stream(self._where, reply.id)


def said(error: Exception) -> str:
    return str(error) or type(error).__name__
