"""A place's send journal, as its only writer holds it: every record is appended behind the last one that was seen."""

import logging
from collections.abc import Callable
from typing import TypeAlias

import anyio
import msgspec

from gateway import records
from gateway.engine.interface import Engine, NewRecord, Record
from gateway.errors import Conflict, EngineError

MessageIds: TypeAlias = tuple[tuple[str, ...], ...]


class SendPosition(msgspec.Struct, frozen=True):
    """Replies up to `upto` are settled; of the reply `out` (0: none) the parts before `part` are sent, as `ids`.

    `in_doubt`: the call that sends `part` was begun, and nobody knows how it ended. `attempts` counts failed tries,
    `strikes` replies in a row that the network refused for good; a place with too many is left alone until `retry_at`.
    """

    seq: int = 0
    upto: int = 0
    out: int = 0
    part: int = 0
    ids: MessageIds = ()
    in_doubt: bool = False
    attempts: int = 0
    retry_at: float = 0.0
    strikes: int = 0


def position_from(record: Record | None) -> SendPosition:
    """What the last record says."""
    if record is None:
        return SendPosition()
    match records.decode(record.data):
        case records.SendIntent(out=out, part=part, message_ids=ids, attempt=attempt):
            return SendPosition(record.seq, out - 1, out, part, ids, in_doubt=True, attempts=attempt)
        case records.SendSucceeded(out=out, last=True):
            return SendPosition(record.seq, out)
        case records.SendSucceeded(out=out, part=part, message_ids=ids):
            return SendPosition(record.seq, out - 1, out, part + 1, ids)
        case records.SendFailed(out=out, permanent=True) as failed:
            return SendPosition(record.seq, out, strikes=failed.strikes, retry_at=failed.retry_at)
        case records.SendFailed(out=out, part=part, message_ids=ids) as failed:
            return SendPosition(
                record.seq,
                out - 1,
                out,
                part,
                ids,
                attempts=failed.attempts,
                retry_at=failed.retry_at,
                strikes=failed.strikes,
            )
    return SendPosition(record.seq)


log = logging.getLogger(__name__)

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 15.0


class SendJournal:
    """Where a place stands (`at`), and how it moves on."""

    def __init__(self, engine: Engine, where: str, clock: Callable[[], float]) -> None:
        self.at = SendPosition()
        self.is_loaded = False
        self._engine = engine
        self._clock = clock
        self._subject = records.send_subject_of(where)

    async def load(self) -> None:
        self.at = position_from(await self._engine.last(self._subject))
        self.is_loaded = True

    def begin(self, out: int) -> None:
        """Take up a reply that was not begun before; strikes stay until something arrives."""
        self.at = SendPosition(self.at.seq, self.at.upto, out, strikes=self.at.strikes)

    async def write_intent(self, reply_id: str, part: int) -> None:
        at = self.at
        intent = records.SendIntent(
            out=at.out, reply_id=reply_id, part=part, attempt=at.attempts + 1, message_ids=at.ids
        )
        seq = await self._append(intent)
        self.at = msgspec.structs.replace(at, seq=seq, part=part, in_doubt=False)  # we live: we see how it ends

    async def sent(self, reply_id: str, part: int, ids: tuple[str, ...], *, is_last: bool) -> None:
        at, known = self.at, (*self.at.ids, ids)
        await self._move(
            records.SendSucceeded(
                out=at.out,
                reply_id=reply_id,
                part=part,
                attempts=at.attempts + 1,
                message_ids=known,
                last=is_last,
            )
        )

    async def write_nothing_to_send(self, reply_id: str) -> None:
        await self._move(records.SendSucceeded(out=self.at.out, reply_id=reply_id, message_ids=self.at.ids))

    async def again(self, reply_id: str, error: str, retry_at: float) -> None:
        """A try failed, and another follows at that time."""
        at = self.at
        await self._move(
            records.SendFailed(
                out=at.out,
                error=error,
                reply_id=reply_id,
                part=at.part,
                attempts=at.attempts + 1,
                message_ids=at.ids,
                permanent=False,
                retry_at=retry_at,
                strikes=at.strikes,
            )
        )

    async def give_up(self, reply_id: str, error: str, attempts: int, strikes: int, retry_at: float) -> None:
        at = self.at
        await self._move(
            records.SendFailed(
                out=at.out,
                error=error,
                reply_id=reply_id,
                part=at.part,
                attempts=attempts,
                message_ids=at.ids,
                strikes=strikes,
                retry_at=retry_at,
            )
        )

    async def _move(self, kept: records.SendRecord) -> None:
        seq = await self._append(kept)
        self.at = position_from(Record(seq, self._subject, records.encode(kept), 0.0))

    async def _append(self, kept: records.SendRecord) -> int:
        """What was done must be written, so an ill journal is waited for.

        Raises:
            Conflict: somebody else sends to this place.
        """
        pause, kept = FIRST_PAUSE, msgspec.structs.replace(kept, at=self._clock())
        put = NewRecord(self._subject, records.encode(kept), expect=self.at.seq, ttl=records.TRAFFIC_TTL)
        while True:
            try:
                return (await self._engine.append(put))[0]
            except Conflict:
                raise
            except EngineError as error:
                log.warning("%s waits for the journal: %s", self._subject, error)
                await anyio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
