"""The sums of usage as the journal keeps them: a record for each call, and one for each day that calls are folded into.

Folding is one append: the days anew, and up to which call they go; then the calls and the older records of those days
are removed. If the process ends in between, the next one removes them. Nothing else ever removes a sum: neither when a
conversation is deleted nor when it is forgotten for its age.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from typing import TypeAlias

import anyio
import anyio.abc
from msgspec.structs import replace

from gateway import record_subjects, records
from gateway.engine.interface import Engine, NewRecord, Record
from gateway.records import DayUsage, RecordedCall, UsageCursor, UsageRow
from gateway.usage.totals import RunningTotals, replace_people
from gateway.usage.turn_usage import TurnUsage

LOOK_SECONDS = 60.0
WRITE_SECONDS = 10.0
SETTLED_SECONDS = 60.0  # so old is a call that is folded: who wrote it has long learned that it is written
MOST_CALLS = 1000  # that wait to be folded, before a day is over

RowKey: TypeAlias = tuple[str, str, str, str]


class UsageJournal:
    """Reads, folds and renames what is kept; `totals` are loaded from it."""

    def __init__(self, engine: Engine, totals: RunningTotals) -> None:
        self.totals = totals
        self._engine = engine
        self._lock = anyio.Lock()

    async def load(self) -> None:
        """Bring the totals up to what is kept."""
        await self._finish(await self._read_folded(""))
        _, month = self.totals.windows()
        async for day in self.read_days(f"{month}-01"):
            self.totals.warned |= set(day.warned)
            for row in day.rows:
                self.totals.add(day.day, row)

    async def read_days(self, since: str = "") -> AsyncIterator[DayUsage]:
        """The sums of each day from then on, in their order, with those calls that are not folded yet."""
        async with self._lock:
            found = await self._read_folded(since)
            async for _, call in self._read_calls():
                if call.day >= since:
                    found[call.day] = _add_calls(found.get(call.day), call.day, [call])
        for day in sorted(found):
            yield found[day]

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Fold what is due, until cancelled."""
        task_status.started()
        while True:
            await anyio.sleep(LOOK_SECONDS)
            await self.fold()

    async def write(self, turn: TurnUsage) -> None:
        """What waits there, where no record of a turn takes it along."""
        with anyio.move_on_after(WRITE_SECONDS, shield=True):
            await turn.write(self._engine)

    async def fold(self, *, settled: float = SETTLED_SECONDS, most: int = MOST_CALLS) -> int:
        """Put calls into the sums of their days, when a day is over or many wait; returns how many."""
        async with self._lock:
            before = self._engine.clock.read() - settled
            due = [(record.seq, call) async for record, call in self._read_calls() if record.ts <= before]
            today, _ = self.totals.windows()
            if not due or (len(due) < most and all(call.day == today for _, call in due)):
                return 0
            await self._write(_by_day(call for _, call in due), due[-1][0])
        return len(due)

    async def rename(self, people: Iterable[str], name: str) -> int:
        """What these people used stands under another name from now on; in how many days."""
        known = set(people)
        self.totals.rename(known, name)
        await self.fold(settled=0.0, most=0)
        async with self._lock:
            days = (await self._read_folded("")).values()
            renamed = [_rename_rows(day, known, name) for day in days if any(row.person in known for row in day.rows)]
            for day in renamed:
                subject = record_subjects.day_subject_of(day.day)
                (seq,) = await self._engine.append(NewRecord(subject, records.encode(day)))
                await self._engine.purge(subject, seq - 1)
        return len(renamed)

    async def _write(self, calls: dict[str, list[RecordedCall]], upto: int) -> None:
        puts = [NewRecord(record_subjects.FOLDED_SUBJECT, records.encode(UsageCursor(upto=upto)))]
        for day, found in calls.items():
            subject = record_subjects.day_subject_of(day)
            _, before = await records.read_last(self._engine, subject, DayUsage)
            puts.append(NewRecord(subject, records.encode(_add_calls(before, day, found))))
        await self._engine.append(*puts)
        await self._finish(calls)

    async def _finish(self, days: Iterable[str]) -> None:
        """Remove what is in the sums: the calls, and what these days were before."""
        _, folded = await records.read_last(self._engine, record_subjects.FOLDED_SUBJECT, UsageCursor)
        await self._engine.purge(record_subjects.USAGE_SUBJECT, folded.upto if folded else 0)
        for subject in (record_subjects.FOLDED_SUBJECT, *map(record_subjects.day_subject_of, days)):
            last = await self._engine.last(subject)
            await self._engine.purge(subject, last.seq - 1 if last else 0)

    async def _read_folded(self, since: str) -> dict[str, DayUsage]:
        found = records.read_all(self._engine, record_subjects.DAY_SUBJECTS, DayUsage)
        return {day.day: day async for _, day in found if day.day >= since}

    def _read_calls(self) -> AsyncIterator[tuple[Record, RecordedCall]]:
        return records.read_all(self._engine, record_subjects.USAGE_SUBJECT, RecordedCall)


def _by_day(calls: Iterable[RecordedCall]) -> dict[str, list[RecordedCall]]:
    days: dict[str, list[RecordedCall]] = defaultdict(list)
    for call in calls:
        days[call.day].append(call)
    return days


def _add_calls(before: DayUsage | None, day: str, calls: Iterable[RecordedCall]) -> DayUsage:
    """The day with these calls."""
    rows, warned = (before.rows, before.warned) if before else ((), ())
    calls = list(calls)
    added = tuple(mark for call in calls for mark in call.warned)
    return DayUsage(day=day, rows=merge_rows([*rows, *(call.row for call in calls)]), warned=(*warned, *added))


def _rename_rows(day: DayUsage, people: set[str], name: str) -> DayUsage:
    rows = [replace(row, person=name) if row.person in people else row for row in day.rows]
    warned = tuple(replace_people(mark, people, name) for mark in day.warned)
    return replace(day, rows=merge_rows(rows), warned=warned)


def merge_rows(rows: Iterable[UsageRow]) -> tuple[UsageRow, ...]:
    """One row for all that differ in nothing but how much was used."""
    sums: dict[RowKey, UsageRow] = {}
    for row in rows:
        key = (row.person, row.hook, row.session_id, row.usage.model)
        sums[key] = replace(row, usage=sums[key].usage + row.usage) if key in sums else row
    return tuple(sums.values())
