"""The values that a migration passes from one engine to another: records, consumers, and the mark on a journal.

Sequences stay the same, since records refer to each other by their sequences.
"""

import hashlib
import time
from collections.abc import AsyncIterator, Mapping

import msgspec
from msgspec.structs import replace

from gateway.engine.interface import Record
from gateway.errors import EngineError

FILLING, FILLED, MOVED = "filling", "filled", "moved"
AGAIN = "run it again there: hermes-gateway migrate --to nats"
SAYS = {
    FILLING: "a migration out of {} was cut off: " + AGAIN,
    FILLED: "a migration out of {} was cut off: " + AGAIN,
    MOVED: "it was taken to {}; go on there, without `engine` in config.yaml",
}


class StoredRecord(Record, frozen=True, gc=False):
    """A record with its message id and its expiry: `until` is a time of the wall clock, None for never."""

    msg_id: str | None = None
    until: float | None = None

    def is_over(self) -> bool:
        return self.until is not None and self.until <= time.time() + 1


class StoredConsumer(msgspec.Struct, frozen=True):
    """A consumer's progress: all up to `floor` was delivered; `owed` maps pending sequences to their attempts."""

    name: str
    patterns: tuple[str, ...]
    floor: int
    owed: Mapping[int, int]


class JournalDigest(msgspec.Struct):
    """A count and a hash of records, to compare two journals."""

    records: int = 0
    _sum: "hashlib._Hash" = msgspec.field(default_factory=hashlib.sha256)

    def add(self, record: StoredRecord) -> None:
        self.records += 1
        self._sum.update(msgspec.json.encode([record.seq, record.subject, record.ts, record.msg_id, len(record.data)]))
        self._sum.update(record.data)

    @property
    def value(self) -> str:
        return self._sum.hexdigest()


async def check_same(source: AsyncIterator[StoredRecord], target: AsyncIterator[StoredRecord]) -> JournalDigest:
    """Compare two journals from end to end; they may differ only in records that have expired.

    Raises:
        EngineError: the target differs from the source.
    """
    digest = JournalDigest()
    left, right = await anext(source, None), await anext(target, None)
    while left or right:
        if left and (right is None or left.seq < right.seq):
            _check_over(left, "is missing in the copy")
            left = await anext(source, None)
        elif right and (left is None or right.seq < left.seq):
            _check_over(right, "is in the copy alone")
            right = await anext(target, None)
        elif left and right:
            if replace(left, until=None) != replace(right, until=None) or _is_kept(left) != _is_kept(right):
                raise EngineError(f"record {left.seq} on {left.subject} is another in the copy; nothing was changed")
            digest.add(left)
            left, right = await anext(source, None), await anext(target, None)
    return digest


def _is_kept(record: StoredRecord) -> bool:
    """Return True if the record never expires."""
    return record.until is None


def _check_over(record: StoredRecord, what: str) -> None:
    if not record.is_over():
        raise EngineError(f"record {record.seq} on {record.subject} {what}; nothing was changed")


class Mark(msgspec.Struct, frozen=True):
    """A mark on a journal that no gateway may use, because a migration to or from another engine is not finished.

    `where` names the host and the home of the other side.
    """

    kind: str
    where: str

    def __str__(self) -> str:
        return f"{self.kind} {self.where}"

    def describe(self) -> str:
        return SAYS.get(self.kind, "a later version is at work on it, out of {}").format(self.where)


def parse_mark(text: str) -> Mark | None:
    kind, _, where = text.partition(" ")
    return Mark(kind, where) if text else None
