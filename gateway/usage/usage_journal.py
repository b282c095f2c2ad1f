"""The sums of usage in the journal: a record for each call, and one for each day, into which calls are folded.

Folding is one append: the new sums of the days, and the last call in them; then the calls and the older records of
those days are removed. If the process ends in between, the next one removes them. Sums are never removed otherwise:
neither when a conversation is deleted nor when it is forgotten for its age.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import TypeAlias

import anyio
import anyio.abc
import msgspec
from msgspec.structs import replace

from gateway.engine.interface import Engine, NewRecord, Record
from gateway.errors import Conflict
from gateway.records import records, subjects
from gateway.records.records import DayUsage, RecordedCall, UsageCursor, UsageRow
from gateway.usage.totals import RunningTotals, replace_people
from gateway.usage.turn_usage import TurnUsage

LOOK_SECONDS = 60.0
WRITE_SECONDS = 10.0
SETTLED_SECONDS = 60.0  # so old is a call that is folded: who wrote it has long learned that it is written
MOST_CALLS = 1000  # that wait to be folded, before a day is over

RowKey: TypeAlias = tuple[str, str, str, str]


class UsageJournal(msgspec.Struct, eq=False):
    """Reads, folds and renames the stored usage; `totals` are loaded from it, and follow it."""

    patterns = (subjects.USAGE_SUBJECT, subjects.FOLDED_SUBJECT)

    _engine: Engine
    totals: RunningTotals
    _lock: anyio.Lock = msgspec.field(default_factory=anyio.Lock)
    _seen: int = 0  # the last call that the totals have

    async def load(self) -> None:
        """Bring the totals up to date with the journal."""
        async with self._lock:
            await self._finish(await self._read_folded(""))
        _, month = self.totals.windows()
        days, calls, self._seen = await self._read(f"{month}-01")
        self.totals.reset(days.values(), {call.id for call in calls})

    async def take(self, record: Record) -> None:
        kept = records.decode(record.data)
        if isinstance(kept, RecordedCall):
            if self.totals.own.pop(kept.id, None) is None and record.seq > self._seen:
                self.totals.add(kept.day, kept.row)
                self.totals.warned |= {*kept.warned}
            self._seen = max(self._seen, record.seq)
        elif isinstance(kept, UsageCursor) and kept.upto > self._seen:  # we were cut off, and these calls are gone
            await self.load()

    async def read_days(self, since: str = "") -> AsyncIterator[DayUsage]:
        """Yield the sums of each day from then on, in their order, including calls that are not folded yet."""
        found, _, _ = await self._read(since)
        for day in sorted(found):
            yield found[day]

    async def _read(self, since: str) -> tuple[dict[str, DayUsage], list[RecordedCall], int]:
        """Return the sums, the unfolded calls among them, and the last sequence in them."""
        async with self._lock:
            while True:
                cursor, folded = await records.read_last(self._engine, subjects.FOLDED_SUBJECT, UsageCursor)
                found = await self._read_folded(since)
                seen, calls = folded.upto if folded else 0, list[RecordedCall]()
                async for record, call in self._read_calls(seen):
                    seen = record.seq
                    calls.append(call)
                last = await self._engine.last(subjects.FOLDED_SUBJECT)
                if (last.seq if last else 0) == cursor:  # else another gateway has folded some meanwhile
                    break
        for day, its in _by_day(call for call in calls if call.day >= since).items():
            found[day] = _add_calls(found.get(day), day, its)
        return found, calls, seen

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Fold what is due, until cancelled."""
        task_status.started()
        while True:
            await anyio.sleep(LOOK_SECONDS)
            await self.fold()

    async def write(self, turn: TurnUsage) -> None:
        """Write the waiting calls that no record of a turn includes."""
        with anyio.move_on_after(WRITE_SECONDS, shield=True):
            await turn.write(self._engine)

    async def fold(self, *, settled: float = SETTLED_SECONDS, most: int = MOST_CALLS) -> int:
        """Fold calls into the sums of their days, when a day is over or many wait; returns their number.

        If another gateway does so at the same moment, only one of them succeeds.
        """
        async with self._lock:
            before = self._engine.clock.read() - settled
            cursor, folded = await records.read_last(self._engine, subjects.FOLDED_SUBJECT, UsageCursor)
            found = self._read_calls(folded.upto if folded else 0)
            due = [(record.seq, call) async for record, call in found if record.ts <= before]
            today, _ = self.totals.windows()
            if not due or (len(due) < most and all(call.day == today for _, call in due)):
                return 0
            try:
                await self._write(_by_day(call for _, call in due), due[-1][0], cursor)
            except Conflict:
                return 0
        return len(due)

    async def rename(self, people: Iterable[str], name: str) -> int:
        """Move the usage of these people to another name from now on. Returns the number of changed days."""
        known = set(people)
        self.totals.rename(known, name)
        await self.fold(settled=0.0, most=0)
        async with self._lock:
            return sum([await self._rename_day(day, known, name) for day in await self._read_folded("")])

    async def _rename_day(self, day: str, people: set[str], name: str) -> bool:
        subject = subjects.day_subject_of(day)
        while True:
            seq, kept = await records.read_last(self._engine, subject, DayUsage)
            if kept is None or not any(row.person in people for row in kept.rows):
                return False
            with suppress(Conflict):
                await records.replace_last(self._engine, subject, _rename_rows(kept, people, name), seq)
                return True

    async def _write(self, calls: dict[str, list[RecordedCall]], upto: int, cursor: int) -> None:
        """Write the folded days. Raises Conflict if another gateway was faster."""
        puts = [NewRecord(subjects.FOLDED_SUBJECT, records.encode(UsageCursor(upto=upto)), expect=cursor)]
        for day, found in calls.items():
            subject = subjects.day_subject_of(day)
            seq, before = await records.read_last(self._engine, subject, DayUsage)
            puts.append(NewRecord(subject, records.encode(_add_calls(before, day, found)), expect=seq))
        await self._engine.append(*puts)
        await self._finish(calls)

    async def _finish(self, days: Iterable[str]) -> None:
        """Remove the records that the sums include: the calls, and the earlier sums of these days."""
        _, folded = await records.read_last(self._engine, subjects.FOLDED_SUBJECT, UsageCursor)
        await self._engine.purge(subjects.USAGE_SUBJECT, folded.upto if folded else 0)
        for subject in (subjects.FOLDED_SUBJECT, *map(subjects.day_subject_of, days)):
            last = await self._engine.last(subject)
            await self._engine.purge(subject, last.seq - 1 if last else 0)

    async def _read_folded(self, since: str) -> dict[str, DayUsage]:
        found = records.read_all(self._engine, subjects.DAY_SUBJECTS, DayUsage)
        return {day.day: day async for _, day in found if day.day >= since}

    def _read_calls(self, after: int) -> AsyncIterator[tuple[Record, RecordedCall]]:
        return records.read_all(self._engine, subjects.USAGE_SUBJECT, RecordedCall, after)


def _by_day(calls: Iterable[RecordedCall]) -> dict[str, list[RecordedCall]]:
    days: dict[str, list[RecordedCall]] = defaultdict(list)
    for call in calls:
        days[call.day].append(call)
    return days


def _add_calls(before: DayUsage | None, day: str, calls: Iterable[RecordedCall]) -> DayUsage:
    """Return the day with these calls added."""
    rows, warned = (before.rows, before.warned) if before else ((), ())
    calls = list(calls)
    added = tuple(mark for call in calls for mark in call.warned)
    return DayUsage(day=day, rows=merge_rows([*rows, *(call.row for call in calls)]), warned=(*warned, *added))


def _rename_rows(day: DayUsage, people: set[str], name: str) -> DayUsage:
    rows = [replace(row, person=name) if row.person in people else row for row in day.rows]
    warned = tuple(replace_people(mark, people, name) for mark in day.warned)
    return replace(day, rows=merge_rows(rows), warned=warned)


def merge_rows(rows: Iterable[UsageRow]) -> tuple[UsageRow, ...]:
    """Merge the rows that differ only in their amounts."""
    sums: dict[RowKey, UsageRow] = {}
    for row in rows:
        key = (row.person, row.hook, row.session_id, row.usage.model)
        sums[key] = replace(row, usage=sums[key].usage + row.usage) if key in sums else row
    return tuple(sums.values())
