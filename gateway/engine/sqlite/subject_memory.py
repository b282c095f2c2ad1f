"""The writer's memory of subjects that were written lately, so that it need not ask the database again.

Any of it may be forgotten at any time. A transaction keeps apart what it learns, until it is committed; it forgets at
once what it makes untrue, so that nothing wrong stays after a rollback.
"""

from collections.abc import Iterable, Sequence

MAX_SUBJECTS = 4096
MAX_SEQ = (1 << 63) - 1


class SubjectMemory:
    """Facts that are known for good (`before`), and those that one transaction adds to them.

    `last` is the last sequence of a subject, where that record has no limit; `open` are the sequences without a limit,
    where none of them is followed by one that has; `indexed` are in the index of subjects.
    """

    def __init__(self, before: "SubjectMemory | None" = None) -> None:
        self._before = before
        self.last: dict[str, int] = {}
        self.open: dict[str, Sequence[int]] = {}
        self.indexed: set[str] = set()

    def find_last(self, subject: str) -> int | None:
        found = self.last.get(subject)
        return self._before.find_last(subject) if found is None and self._before else found

    def find_open(self, subject: str) -> Sequence[int] | None:
        found = self.open.get(subject)
        return self._before.find_open(subject) if found is None and self._before else found

    def is_indexed(self, subject: str) -> bool:
        return subject in self.indexed or bool(self._before and self._before.is_indexed(subject))

    def note_append(self, subject: str, seq: int, *, is_limited: bool) -> None:
        before = self.find_open(subject)
        self.indexed.add(subject)
        if is_limited:
            self.forget_records(subject)
        else:
            self.last[subject] = seq
            if before is not None:
                self.open[subject] = (*before, seq)

    def note_settled(self, subject: str, upto: int) -> None:
        """All up to there have a limit; what comes behind is known where nothing does, or was."""
        before, is_all = self.find_open(subject), upto in (self.find_last(subject), MAX_SEQ)
        self.forget_records(subject)
        if before is not None or is_all:
            self.open[subject] = tuple(seq for seq in before or () if seq > upto)

    def forget(self, subjects: Iterable[str]) -> None:
        """Some of their records are gone."""
        for subject in subjects:
            self.forget_records(subject)
            self.indexed.discard(subject)
            if self._before:
                self._before.forget([subject])

    def keep(self, learned: "SubjectMemory") -> None:
        """Take over what a transaction has learned, which is committed."""
        if len(self.last) + len(self.open) + len(self.indexed) > MAX_SUBJECTS:
            self.last, self.open, self.indexed = {}, {}, set()
        self.last |= learned.last
        self.open |= learned.open
        self.indexed |= learned.indexed

    def forget_records(self, subject: str) -> None:
        """Forget its sequences and their limits."""
        self.last.pop(subject, None)
        self.open.pop(subject, None)
        if self._before:
            self._before.forget_records(subject)
