"""A place's send journal, as its only writer holds it.

`gw.sent.<place>` has the intents, successes and failures of deliveries to one place. The last record is enough to
continue: up to which reply everything is settled, which reply is being sent, and how many of its parts are sent. So a
start reads one record, however long the history.

Every record is appended with the sequence of the one before it (compare-and-set). A second sender of the same place,
which knows another last record, meets a Conflict at its first append, and no part is sent twice.

A part is sent between two records: `SendIntent`, the call to the network, `SendSucceeded`. If the process dies between
the two, the next start finds an intent as the last record, and knows that the outcome of that one call is unknown
(`in_doubt`). A stream has a journal of its own for each reply that it displays, with `out` 0, because its reply is not
in the journal yet.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from gateway.engine.interface import Engine, NewRecord, SettledRecords, append_until_written, make_shards_error
from gateway.outbox.interface import MessageIds
from gateway.records import records, subjects


class SendPosition(msgspec.Struct, frozen=True):
    """Replies up to `upto` are settled; of the reply `out` (0: none) the parts before `part` are sent, as `ids`.

    `in_doubt`: the call for `part` was started, and its outcome is unknown. `attempts` counts failed tries, `strikes`
    the replies in a row that the network refused for good; a place with too many is not used until `retry_at`.
    """

    upto: int = 0
    seq: int = 0
    out: int = 0
    part: int = 0
    ids: MessageIds = ()
    in_doubt: bool = False
    attempts: int = 0
    retry_at: float = 0.0
    strikes: int = 0


async def read_position(engine: Engine, place: str, *, fresh: bool = True) -> SendPosition:
    """Read the position after a place's last record."""
    last = await engine.last(subjects.send_subject_of(place), fresh=fresh)
    kept = records.decode(last.data) if last else None
    if last is None or not isinstance(kept, records.SendRecord):
        return SendPosition(seq=last.seq if last else 0)
    return _position_after(last.seq, kept)


def _position_after(seq: int, kept: records.SendRecord) -> SendPosition:
    if kept.settled is not msgspec.UNSET:
        raise make_shards_error("the journal")
    before = max(kept.out - 1, 0)
    match kept:
        case records.SendIntent(out=out, part=part, message_ids=ids, attempt=attempt):
            # The intent counts as an attempt: a reply that kills the process is not retried for ever.
            return SendPosition(before, seq, out, part, ids, in_doubt=True, attempts=attempt)
        case records.SendSucceeded(out=out, last=True):
            return SendPosition(out, seq)
        case records.SendSucceeded(out=out, part=part, message_ids=ids):
            return SendPosition(before, seq, out, part + 1, ids)
        case records.SendFailed(out=out, permanent=True, strikes=strikes, retry_at=retry_at):
            return SendPosition(out, seq, strikes=strikes, retry_at=retry_at)
        case records.SendFailed(out=out, part=part, message_ids=ids, attempts=attempts) as failed:
            return SendPosition(
                before, seq, out, part, ids, attempts=attempts, retry_at=failed.retry_at, strikes=failed.strikes
            )
    raise TypeError(f"{type(kept).__name__} is not a record of a send journal")


def is_end(kept: records.SendRecord) -> bool:
    """Return True if the record ends the delivery of its reply."""
    match kept:
        case records.SendSucceeded(last=True) | records.SendFailed(permanent=True):
            return True
    return False


async def read_shown_part(
    engine: Engine, place: str, reply_id: str
) -> records.SendIntent | records.SendSucceeded | None:
    """Read the last record of a stream of this reply; None if it displayed nothing."""
    last = await engine.last(subjects.send_subject_of(place, reply_id))
    kept = records.decode(last.data) if last else None
    return kept if isinstance(kept, records.SendIntent | records.SendSucceeded) else None


class SendJournal:
    """A place's position, the subject of its present reply (`owed_on`), and the writes that move it on.

    The end of a reply settles it, and its records: these get their expiry only then.
    """

    def __init__(self, engine: Engine, place: str, clock: Callable[[], float]) -> None:
        self.position = SendPosition()
        self.is_loaded = False
        self.owed_on = ""
        self._engine = engine
        self._clock = clock
        self._place = place
        self._subject = subjects.send_subject_of(place)

    async def load(self) -> None:
        self.position = await read_position(self._engine, self._place, fresh=False)
        self.is_loaded = True

    def begin(self, out: int) -> None:
        """Start a new reply; strikes stay until a message arrives."""
        at = self.position
        self.position = SendPosition(at.upto, at.seq, out, strikes=at.strikes)

    async def write_intent(self, reply_id: str, part: int) -> None:
        at = self.position
        intent = records.SendIntent(
            out=at.out, reply_id=reply_id, part=part, attempt=at.attempts + 1, message_ids=at.ids
        )
        seq = await self._append(intent)
        # A reader of the intent after a crash is in doubt; its writer is alive, and sees how the call ends.
        self.position = msgspec.structs.replace(at, seq=seq, part=part, in_doubt=False)

    async def write_sent(
        self, reply_id: str, part: int, ids: tuple[str, ...], *, is_last: bool, owed: Sequence[NewRecord] = ()
    ) -> None:
        """Record a sent part. `owed`, here and below, are records for the same append."""
        at = self.position
        await self._move(
            records.SendSucceeded(
                out=at.out,
                reply_id=reply_id,
                part=part,
                attempts=at.attempts + 1,
                message_ids=(*at.ids, ids),
                last=is_last,
            ),
            owed,
        )

    async def write_nothing_to_send(self, reply_id: str, owed: Sequence[NewRecord]) -> None:
        at = self.position
        await self._move(records.SendSucceeded(out=at.out, reply_id=reply_id, message_ids=at.ids), owed)

    async def write_failure(self, failed: records.SendFailed, owed: Sequence[NewRecord] = ()) -> None:
        """Record that the reply is cancelled, or will be retried; its position is filled in here."""
        at = self.position
        await self._move(msgspec.structs.replace(failed, part=at.part, message_ids=at.ids), owed)

    async def _move(self, kept: records.SendRecord, owed: Sequence[NewRecord]) -> None:
        self.position = _position_after(await self._append(kept, owed), kept)

    async def _append(self, kept: records.SendRecord, owed: Sequence[NewRecord] = ()) -> int:
        """Append a record, however long the journal takes no appends.

        Raises:
            Conflict: another process sends to this place.
        """
        kept = msgspec.structs.replace(kept, at=self._clock())
        settled: list[SettledRecords] = []
        if is_end(kept):
            upto = ((self.owed_on, kept.out), (self._subject, self.position.seq))
            settled = [SettledRecords(subject, seq, records.TRAFFIC_TTL) for subject, seq in upto]
        limit = records.SENT_TTL if settled else None
        put = NewRecord(self._subject, records.encode(kept), expect=self.position.seq, ttl=limit)
        append = partial(self._engine.append, *owed, put, settled=settled)
        return (await append_until_written(append, self._subject))[-1]
