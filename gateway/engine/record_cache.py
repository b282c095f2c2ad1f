"""The newest records in memory, so that a reader of recent records needs neither the disk nor a server.

Only this process writes, and each commit passes here before its callers get their results. So memory has all records
behind some sequence, the `floor`, and answers each read behind the floor at once. In a busy gateway nearly all reads
are of this kind: a worker that has finished something checks whether more work came.

`read` has three cases. It answers a read behind the floor from memory. For a read before the floor, `_empty_ranges`
remembers that a pattern matched nothing between two sequences: if this range reaches the floor, memory answers for the
rest. (This helps with records that were never written, such as approvals: only the first read needs the journal.) In
all other cases memory does not have the answer, and `read` returns None. The floor only rises: records that have left
memory never come back, so no answer has a gap.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, takewhile

import msgspec

from gateway.engine.interface import Record
from gateway.engine.subjects import matches

MAX_RECORDS = 2048
MAX_BYTES = 2_000_000
MAX_EMPTY_RANGES = 2048


class RecordCache(msgspec.Struct, eq=False):
    """The records behind the floor; a method returns None if memory does not have the answer.

    `now` is the clock that expires records.
    """

    _now: Callable[[], float]
    end: int = 0
    _floor: int | None = None
    _size: int = 0
    _records: OrderedDict[int, Record] = msgspec.field(default_factory=OrderedDict)
    _expiries: dict[int, float] = {}
    _seqs: dict[str, deque[int]] = {}
    _indexes: dict[str, tuple[deque[int], ...]] = {}  # by subject: its lists in `_seqs`
    _empty_ranges: OrderedDict[tuple[str, int], int] = msgspec.field(default_factory=OrderedDict)

    def begin(self, end: int) -> None:
        """Start at the sequence `end`: records up to `end` are unknown, and `follow` adds all later records."""
        self._floor = self.end = end

    def follow(self, appended: Iterable[Record], expiries: Mapping[int, float], removed: Iterable[int] = ()) -> None:
        """Add appended records and the times at which some of them expire, and drop removed sequences."""
        for record in appended:
            if self._floor is None:
                self._floor = record.seq - 1
            self.end = record.seq
            self._records[record.seq] = record
            self._size += len(record.data)
            if record.subject not in self._indexes:
                indexes = (self._seqs.setdefault(name, deque()) for name in _index_keys_of(record.subject))
                self._indexes[record.subject] = tuple(indexes)
            for seqs in self._indexes[record.subject]:
                seqs.append(record.seq)
        self._expiries.update({seq: expires for seq, expires in expiries.items() if seq in self._records})
        for seq in removed:
            self._drop(seq)
        while len(self._records) > MAX_RECORDS or self._size > MAX_BYTES:
            self._floor = next(iter(self._records))
            self._drop(self._floor)

    def last(self, subject: str) -> Record | None:
        return next(self._alive(reversed(self._seqs.get(subject, ()))), None)

    def get(self, seqs: Sequence[int]) -> list[Record] | None:
        """Return the records of ascending sequences, without removed records; None if the cache begins later."""
        if self._floor is None or seqs[0] <= self._floor:
            return None
        return list(self._alive(seq for seq in seqs if seq in self._records))

    def read(self, pattern: str, after: int, limit: int) -> list[Record] | None:
        name, empty_until = _index_key_of(pattern), self._empty_ranges.get((pattern, after), after)
        if self._floor is None or empty_until < self._floor or not name:
            return None
        seqs, answer = self._seqs.get(name), list[Record]()
        if seqs and seqs[-1] > empty_until:
            newer = takewhile(lambda seq: seq > empty_until, reversed(seqs))
            found = self._alive(reversed(list(newer)))
            if name.startswith("*."):
                found = (record for record in found if matches(pattern, record.subject))
            answer = list(islice(found, limit))
        if empty_until > after and not answer:
            self.note_empty_range(pattern, after, self.end)
        return answer

    def note_empty_range(self, pattern: str, after: int, end: int) -> None:
        """Remember that no record matches the pattern behind `after`, up to `end`."""
        self._empty_ranges[pattern, after] = end
        self._empty_ranges.move_to_end((pattern, after))
        if len(self._empty_ranges) > MAX_EMPTY_RANGES:
            self._empty_ranges.popitem(last=False)

    def limit(self, subject: str, upto: int, end: float) -> None:
        """Let the subject's records up to and including `upto` expire at `end`, if not earlier."""
        for seq in self._seqs.get(subject, ()):
            if seq <= upto:
                self._expiries[seq] = min(end, self._expiries.get(seq, end))

    def list_under(self, pattern: str, upto: int) -> list[int]:
        """List the cached sequences whose subjects match, up to and including `upto`."""
        name = _index_key_of(pattern)
        seqs = self._seqs.get(name, ()) if name else self._records
        return [seq for seq in seqs if seq <= upto and matches(pattern, self._records[seq].subject)]

    def list_alive(self, pattern: str, after: int) -> list[int]:
        """List the cached sequences that match and have not expired, after `after`."""
        found = (seq for seq in self.list_under(pattern, self.end) if seq > after)
        return [record.seq for record in self._alive(found)]

    def _alive(self, seqs: Iterable[int]) -> Iterator[Record]:
        now = self._now()
        return (self._records[seq] for seq in seqs if seq not in self._expiries or self._expiries[seq] > now)

    def _drop(self, seq: int) -> None:
        record = self._records.pop(seq, None)
        if record is None:
            return
        self._expiries.pop(seq, None)
        self._size -= len(record.data)
        indexes = self._indexes[record.subject]
        for seqs in indexes:
            seqs.remove(seq)
        if not indexes[0]:
            del self._indexes[record.subject]
            for name in _index_keys_of(record.subject):
                if not self._seqs[name]:
                    del self._seqs[name]


def _index_keys_of(subject: str) -> tuple[str, str, str]:
    """Return the three index keys of a subject: itself, its siblings, and the subjects with the same end."""
    above, _, end = subject.rpartition(".")
    return subject, f"{above}.*", f"*.{end}"


@lru_cache(1024)
def _index_key_of(pattern: str) -> str:
    """Return the index key that covers all matches and perhaps more; "" if no key does."""
    if "*" not in pattern and ">" not in pattern:
        return pattern
    above, _, end = pattern.rpartition(".")
    if end not in ("*", ">"):
        return f"*.{end}"
    return pattern if end == "*" and above and "*" not in above else ""
