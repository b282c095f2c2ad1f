"""The half hours of a node: what was counted since the last one is written as a record, and added to the day's.

Nothing is written on the way of a message: a half hour is the difference of sums that the process has anyway. A half
hour in which nothing happened has no record. Each record has the subject of its place in a ring, so a node has 96 half
hours and 30 days at most, whatever its clock does. A process that is killed loses its open half hour.
"""

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from heapq import nlargest

import anyio
import anyio.abc
import msgspec

from gateway.engine.interface import Engine, NewRecord
from gateway.errors import Conflict, EngineError
from gateway.records import records, subjects
from gateway.records.figures import FigureDay, HalfHour, WorkTotal

log = logging.getLogger(__name__)

HALF_HOUR, HOUR, DAY = 1800, 3600, 86_400
MOST_HALF_HOURS, MOST_DAYS = 96, 30
MOST_HOOKS = 10
MOST_NETWORKS = 10
LOOK_SECONDS = 300.0
WRITE_SECONDS = 5.0

HookCounts = dict[str, tuple[int, int]]
ReadTotals = Callable[[], HalfHour]
"""Returns the sums since the start of the process, of all hooks and networks."""


class HalfHours:
    """The writer of a node's half hours."""

    def __init__(self, engine: Engine, node: str, read: ReadTotals, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._node = node
        self._read = read
        self.clock = clock
        self._written = HalfHour()
        self._at = begin_of(clock(), HALF_HOUR)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Write each half hour when it is over, and the open one at the end."""
        task_status.started()
        try:
            while True:
                left = HALF_HOUR - self.clock() % HALF_HOUR
                await anyio.sleep(min(LOOK_SECONDS, left))  # the clock may be set meanwhile
                if begin_of(self.clock(), HALF_HOUR) != self._at:
                    await self.write()
        finally:
            with anyio.move_on_after(WRITE_SECONDS, shield=True):
                await self.write()

    def read_open(self) -> HalfHour:
        """Return the figures that no record has yet."""
        return find_difference(self._read(), self._written, self._at)

    async def write(self) -> None:
        """Write what was counted since the last record; after a failure, the next record has it."""
        now = self._read()
        open_one = find_difference(now, self._written, self._at)
        if has_work(open_one):
            try:
                await self._append(cut(open_one))
            except (EngineError, Conflict) as error:
                log.warning("the figures of this half hour are not written yet: %s", error)
                return
        self._written, self._at = now, begin_of(self.clock(), HALF_HOUR)

    async def list_half_hours(self) -> list[HalfHour]:
        """List the half hours of two days that have anything, of all nodes, the oldest first."""
        kept = records.read_all(self._engine, subjects.FIGURE_SUBJECTS.format("half"), HalfHour)
        found = [one async for _, one in kept]
        return self._merge([*found, self.read_open()], (MOST_HALF_HOURS - 1) * HALF_HOUR)

    async def list_hours(self) -> list[HalfHour]:
        """List the hours of 30 days, as above, with their work alone."""
        kept = records.read_all(self._engine, subjects.FIGURE_SUBJECTS.format("day"), FigureDay)
        found = [
            HalfHour(at=day.at + hour * HOUR, work=work) async for _, day in kept for hour, work in day.hours.items()
        ]
        open_one = self.read_open()
        return self._merge([*found, HalfHour(at=begin_of(open_one.at, HOUR), work=open_one.work)], MOST_DAYS * DAY)

    def _merge(self, found: Iterable[HalfHour], length: float) -> list[HalfHour]:
        """Add up what has the same beginning, unless it is older or of the future."""
        now, parts = self.clock(), defaultdict[float, list[HalfHour]](list)
        for one in found:
            if has_work(one) and begin_of(now, HALF_HOUR) - length <= one.at <= now:
                parts[one.at].append(one)
        return [add(parts[at], at) for at in sorted(parts)]

    async def _append(self, one: HalfHour) -> None:
        at = int(one.at)
        half, day = (
            subjects.figure_subject_of(self._node, kind, at // size % most)
            for kind, size, most in (("half", HALF_HOUR, MOST_HALF_HOURS), ("day", DAY, MOST_DAYS))
        )
        half_seq, before = await records.read_last(self._engine, half, HalfHour)
        day_seq, hours = await records.read_last(self._engine, day, FigureDay)
        whole = cut(add([before, one], one.at)) if before and before.at == one.at else one
        begun = begin_of(at, DAY)
        kept = hours.hours if hours and hours.at == begun else {}
        hour = (at - begun) // HOUR
        full = FigureDay(at=begun, hours={**kept, hour: kept.get(hour, WorkTotal()) + one.work})
        written = await self._engine.append(
            NewRecord(half, records.encode(whole), expect=half_seq),
            NewRecord(day, records.encode(full), expect=day_seq),
        )
        for subject, seq in zip((half, day), written, strict=True):
            await self._engine.purge(subject, seq - 1)


def begin_of(moment: float, size: int) -> int:
    """Return the beginning of the half hour or day with this moment."""
    return int(moment // size * size)


def has_work(one: HalfHour) -> bool:
    """Tell if anything happened."""
    return one.work != WorkTotal() or bool(one.messages)


def add(parts: Iterable[HalfHour], at: float) -> HalfHour:
    """Add up the figures of several nodes, or of several runs of one."""
    parts = list(parts)
    hooks: HookCounts = {}
    for part in parts:
        for name, (calls, failures) in part.hooks.items():
            before = hooks.get(name, (0, 0))
            hooks[name] = before[0] + calls, before[1] + failures
    times = [part.times for part in parts if part.times]
    messages: Counter[str] = sum((Counter(part.messages) for part in parts), Counter())
    return HalfHour(
        at=at,
        work=sum((part.work for part in parts), WorkTotal()),
        times=tuple(map(sum, zip(*times, strict=False))),
        messages=dict(messages),
        hooks=hooks,
    )


def find_difference(now: HalfHour, before: HalfHour, at: float) -> HalfHour:
    """Return what was counted in between. A hook that was loaded again since then counts from 0."""
    hooks: HookCounts = {}
    for name, counts in now.hooks.items():
        known = before.hooks.get(name, (0, 0))
        calls, failures = counts if counts < known else (counts[0] - known[0], counts[1] - known[1])
        if calls or failures:
            hooks[name] = calls, failures
    of_hooks = tuple(map(sum, zip(*hooks.values(), strict=True))) or (0, 0)
    spent = (getattr(now.work, name) - getattr(before.work, name) for name in ("turns", "failed", "tokens", "cost"))
    times = tuple(one - had for one, had in zip(now.times, before.times or (0,) * len(now.times), strict=True))
    return HalfHour(
        at=at,
        work=WorkTotal(*spent, *of_hooks),
        times=times if any(times) else (),
        messages=dict(Counter(now.messages) - Counter(before.messages)),
        hooks=hooks,
    )


def cut(one: HalfHour) -> HalfHour:
    """Leave out all but the hooks that failed or were called most, and the networks with most messages."""
    failed = [name for name, (_, failures) in one.hooks.items() if failures]
    worst = nlargest(MOST_HOOKS // 2, failed, key=lambda name: one.hooks[name][1])
    called = nlargest(MOST_HOOKS, one.hooks, key=one.hooks.__getitem__)
    names = list(dict.fromkeys([*worst, *called]))[:MOST_HOOKS]
    networks = nlargest(MOST_NETWORKS, one.messages.items(), key=lambda item: item[1])
    hooks = {name: one.hooks[name] for name in names}
    return msgspec.structs.replace(one, messages=dict(networks), hooks=hooks)
