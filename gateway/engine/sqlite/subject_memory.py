"""The writer's memory of subjects that were written recently, to save database queries.

Any part of this memory may be forgotten at any time. The writer forgets all subjects when a transaction is rolled back,
and the affected subjects when records are removed.
"""

from collections.abc import Container, Iterable, Sequence

import msgspec

from gateway.engine.interface import Record

MAX_SUBJECTS = 4096
MAX_SEQ = (1 << 63) - 1


class SubjectMemory(msgspec.Struct, eq=False):
    """Facts about subjects, including the changes of the transaction in progress.

    `last` is the last sequence of a subject, if that record has no expiry. `open` are all sequences of a subject
    without an expiry, unless a record with an expiry follows one of them. `indexed` are the subjects in the index.
    """

    last: dict[str, int] = {}
    open: dict[str, Sequence[int]] = {}
    indexed: set[str] = set()

    def note_appended(self, records: Iterable[Record], expiries: Container[int]) -> None:
        """Note appended records, some of which have an expiry."""
        if max(len(self.open), len(self.indexed)) > MAX_SUBJECTS:
            self.clear()
        for record in records:
            self.indexed.add(record.subject)
            if record.seq in expiries:
                self.forget_records(record.subject)
            else:
                self.last[record.subject] = record.seq
                if record.subject in self.open:
                    self.open[record.subject] = (*self.open[record.subject], record.seq)

    def note_settled(self, subject: str, upto: int) -> None:
        """Note that all records up to `upto` have an expiry.

        The later records are known only if all records were known, or if no record follows `upto`.
        """
        before, is_all = self.open.get(subject), upto in (self.last.get(subject), MAX_SEQ)
        self.forget_records(subject)
        if before is not None or is_all:
            self.open[subject] = tuple(seq for seq in before or () if seq > upto)

    def forget(self, subjects: Iterable[str]) -> None:
        """Forget subjects that have lost records."""
        for subject in subjects:
            self.forget_records(subject)
            self.indexed.discard(subject)

    def forget_records(self, subject: str) -> None:
        """Forget a subject's sequences and their limits."""
        self.last.pop(subject, None)
        self.open.pop(subject, None)

    def clear(self) -> None:
        self.last.clear()
        self.open.clear()
        self.indexed.clear()
