"""A place's send journal, as its only writer holds it.

On `gw.sent.<place>` stand the intents, successes and failures of what is sent to one place. The last record says all
that is needed to go on: up to which reply everything is settled, which reply is under way, and how many of its parts
are sent. So a start reads one record, however much was sent before.

Every record is appended with the sequence of the one before it (compare-and-set). A second sender of the same place,
whose last record is another one, meets a Conflict at its first append, and no part goes out twice.

A part is sent between two records: `SendIntent`, the call to the network, `SendSucceeded`. If the process dies between
the two, the next start finds an intent as the last record, and knows that the outcome of that one call is unknown
(`in_doubt`). Beside the places' journals, a stream has one of its own for each reply that it shows, with `out` 0,
because its reply is not in the journal yet.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from gateway.engine.interface import Engine, NewRecord, SettledRecords, append_until_written
from gateway.engine.stored_journal import make_shards_error
from gateway.outbox.interface import MessageIds
from gateway.records import records, subjects


class SendPosition(msgspec.Struct, frozen=True):
    """Replies up to `upto` are settled; of the reply `out` (0: none) the parts before `part` are sent, as `ids`.

    `in_doubt`: the call that sends `part` was begun, and nobody knows how it ended. `attempts` counts failed tries,
    `strikes` replies in a row that the network refused for good; a place with too many is left alone until `retry_at`.
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
    """Reads the position that a place's last record leads to."""
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
            # The intent counts as an attempt by itself: a process that dies of a reply does not try it for ever.
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
    raise TypeError(f"{type(kept).__name__} is no record of a send journal")


def is_end(kept: records.SendRecord) -> bool:
    """Asks whether nothing is owed of the reply any more."""
    match kept:
        case records.SendSucceeded(last=True) | records.SendFailed(permanent=True):
            return True
    return False


async def read_shown_part(
    engine: Engine, place: str, reply_id: str
) -> records.SendIntent | records.SendSucceeded | None:
    """Reads the last thing that a stream of this reply wrote down; None where it showed nothing."""
    last = await engine.last(subjects.send_subject_of(place, reply_id))
    kept = records.decode(last.data) if last else None
    return kept if isinstance(kept, records.SendIntent | records.SendSucceeded) else None


class SendJournal:
    """Where a place stands (`position`), on which subject what is under way is owed (`owed_on`), and how it moves on.

    The end of a reply settles it, and all that was written of it: from then on these have a limit, and not before.
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
        """Take up a reply that was not begun before; strikes stay until something arrives."""
        at = self.position
        self.position = SendPosition(at.upto, at.seq, out, strikes=at.strikes)

    async def write_intent(self, reply_id: str, part: int) -> None:
        at = self.position
        intent = records.SendIntent(
            out=at.out, reply_id=reply_id, part=part, attempt=at.attempts + 1, message_ids=at.ids
        )
        seq = await self._append(intent)
        # Whoever reads the intent after a crash is in doubt; we who wrote it live, and see how the call ends.
        self.position = msgspec.structs.replace(at, seq=seq, part=part, in_doubt=False)

    async def write_sent(
        self, reply_id: str, part: int, ids: tuple[str, ...], *, is_last: bool, owed: Sequence[NewRecord] = ()
    ) -> None:
        """`owed`, here and below: what is to stand in the journal when this does, in the same append."""
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
        """Writes that the reply is given up, or tried again; where it stands is filled in here."""
        at = self.position
        await self._move(msgspec.structs.replace(failed, part=at.part, message_ids=at.ids), owed)

    async def _move(self, kept: records.SendRecord, owed: Sequence[NewRecord]) -> None:
        self.position = _position_after(await self._append(kept, owed), kept)

    async def _append(self, kept: records.SendRecord, owed: Sequence[NewRecord] = ()) -> int:
        """Write down what was done, however long the journal takes nothing.

        Raises:
            Conflict: somebody else sends to this place.
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
