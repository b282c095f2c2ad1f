"""The newest records in memory, so that whoever asks for what was just written need not ask the disk, or a server.

Only this process writes, and every commit passes here before its callers hear of it. So behind some sequence, the
`floor`, memory has all that there is, and a question about what comes after it is answered at once. In a busy gateway
nearly all questions are of that kind: whoever has finished something asks whether there is more.

`read` knows three cases. Behind the floor it answers. Before it, it asks `empty_ranges`, which remembers that a pattern
matched nothing between two sequences: if that reaches up to the floor, memory answers for the rest. (That serves
patterns of what was never written, such as approvals that nobody gave: one look at the journal, then none.) Else it
does not know, and says None. The floor only rises: what has left memory never comes back, so no answer ever has a gap.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile

from gateway.engine.interface import Record
from gateway.engine.subjects import matches

MAX_RECORDS = 2048
MAX_BYTES = 2_000_000
MAX_EMPTY_RANGES = 2048


class RecordCache:
    """The records behind `floor`; each answer is None where it is not known here. `now`: by which records are over."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.end = 0
        self._floor: int | None = None
        self._size = 0
        self._records: OrderedDict[int, Record] = OrderedDict()
        self._expiries: dict[int, float] = {}
        self._seqs: dict[str, deque[int]] = {}
        self._indexes: dict[str, tuple[deque[int], ...]] = {}  # by subject: under each of its names
        self._empty_ranges: OrderedDict[tuple[str, int], int] = OrderedDict()

    def begin(self, end: int) -> None:
        """Nothing is known of what is up to this sequence, and all that comes behind it."""
        self._floor = self.end = end

    def follow(self, appended: Iterable[Record], expiries: Mapping[int, float], removed: Iterable[int] = ()) -> None:
        """These stand in the journal, with the end of their time where they have one, and those no more."""
        for record in appended:
            self._keep(record)
        self._expiries.update({seq: expires for seq, expires in expiries.items() if seq in self._records})
        for seq in removed:
            self._drop(seq)
        while len(self._records) > MAX_RECORDS or self._size > MAX_BYTES:
            self._floor = next(iter(self._records))
            self._drop(self._floor)

    def last(self, subject: str) -> Record | None:
        return next(self._alive(reversed(self._seqs.get(subject, ()))), None)

    def get(self, seqs: Sequence[int]) -> list[Record] | None:
        """Find some, in ascending order, that are still there; None: not all are known here."""
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
        """Nothing matches between these two sequences."""
        self._empty_ranges[pattern, after] = end
        self._empty_ranges.move_to_end((pattern, after))
        if len(self._empty_ranges) > MAX_EMPTY_RANGES:
            self._empty_ranges.popitem(last=False)

    def limit(self, subject: str, upto: int, end: float) -> None:
        """Those of the subject up to and with this sequence are over then, if not before."""
        for seq in self._seqs.get(subject, ()):
            if seq <= upto:
                self._expiries[seq] = min(end, self._expiries.get(seq, end))

    def list_under(self, pattern: str, upto: int) -> list[int]:
        """The sequences of those that match and are kept here, up to and with `upto`."""
        name = _index_key_of(pattern)
        seqs = self._seqs.get(name, ()) if name else self._records
        return [seq for seq in seqs if seq <= upto and matches(pattern, self._records[seq].subject)]

    def list_alive(self, pattern: str, after: int) -> list[int]:
        """The same behind a sequence, but for those whose time is over."""
        found = (seq for seq in self.list_under(pattern, self.end) if seq > after)
        return [record.seq for record in self._alive(found)]

    def _alive(self, seqs: Iterable[int]) -> Iterator[Record]:
        now = self._now()
        return (self._records[seq] for seq in seqs if seq not in self._expiries or self._expiries[seq] > now)

    def _keep(self, record: Record) -> None:
        if self._floor is None:
            self._floor = record.seq - 1
        self.end = record.seq
        self._records[record.seq] = record
        self._size += len(record.data)
        indexes = self._indexes.get(record.subject)
        if indexes is None:
            indexes = tuple(self._seqs.setdefault(name, deque()) for name in _index_keys_of(record.subject))
            self._indexes[record.subject] = indexes
        for seqs in indexes:
            seqs.append(record.seq)

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
    """Under what a record can be found: its subject, all beside it, all that ends alike."""
    above, _, end = subject.rpartition(".")
    return subject, f"{above}.*", f"*.{end}"


def _index_key_of(pattern: str) -> str:
    """Returns the key under which all stands that matches, and perhaps more; empty where there is none."""
    if "*" not in pattern and ">" not in pattern:
        return pattern
    above, _, end = pattern.rpartition(".")
    if end not in ("*", ">"):
        return f"*.{end}"
    return pattern if end == "*" and above and "*" not in above else ""
