"""How far a place's replies are sent: all of it stands in the last record of the place's send journal."""

from typing import TypeAlias

import msgspec

from gateway import records
from gateway.engine.interface import Record

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
