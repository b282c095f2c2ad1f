"""The timetables of hooks: the event `schedule:<hook>` comes when a hook's `schedule:` is due.

The time of the last event is written to the journal before the event is emitted, so a restart repeats none. For a
durable hook the same append contains the event, so a crash in between loses none. If a hook was due while it could not
be called (the gateway was down, the machine asleep, the hook broken), it gets one event afterwards, which says how late
it is. Times at which the hook was switched off are skipped.

The wall clock decides. If it is put forward, hooks become due; if it is put back a little, nothing repeats until the
clock has caught up. After a jump back of more than an hour the count starts again.

One of several gateways on a journal does this at a time. If two do it for a moment, only one of them emits: each mark
is written on the condition that it follows the one that was read.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import anyio
import anyio.abc
import msgspec

from gateway.engine.interface import Engine, NewRecord
from gateway.errors import Conflict, Duplicate
from gateway.hooks import HookRegistry
from gateway.jobs.job import read_timetable
from gateway.jobs.timer import LONGEST_JUMP, LOOK, NEVER, Clocks, Timer
from gateway.records import records, subjects

KEY = "schedule"  # its name in the registry

log = logging.getLogger(__name__)

HookPresence = Literal["there", "away", "off"]


class ScheduledHook(NamedTuple):
    """A hook with a timetable. `away`: it cannot be called now, and gets the event later; `off`: it wants none."""

    hook: str
    timetable: str
    presence: HookPresence
    is_durable: bool


class ScheduleMark(msgspec.Struct, frozen=True):
    """The time of a hook's last event, and the timetable that it followed."""

    timetable: str
    at: float
    seq: int = 0  # of its record


class Scheduler:
    """Calls hooks when they are due. `planned` returns the hooks that have a timetable now."""

    def __init__(
        self, engine: Engine, registry: HookRegistry, planned: Callable[[], Iterable[ScheduledHook]], clocks: Clocks
    ) -> None:
        self._engine = engine
        self._registry = registry
        self._planned = planned
        self._clocks = clocks
        self._marks: dict[str, ScheduleMark] = {}
        self._woken = anyio.Event()
        self._timer = Timer(self.load, self._begin, clocks)
        self.look = self._timer.look

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Call hooks until cancelled."""
        self._marks.clear()  # another gateway may have moved them
        leave = self._registry.watch(("hook:loaded", "hook:failed"), self._wake, key=KEY)
        try:
            await self.load()
            task_status.started()
            await self._timer.run(self._hear)
        finally:
            leave()

    def _wake(self, _name: str, _event: Any) -> None:
        self._woken.set()

    async def _hear(self) -> None:
        """Plan the hooks that are new, or have another timetable."""
        await self._woken.wait()
        self._woken = anyio.Event()
        with anyio.CancelScope(shield=True):  # a mark that is written, and an event that is not emitted, would lose it
            await self.load()

    async def load(self) -> None:
        """Plan the hooks that are not planned as they are now."""
        now = self._clocks.wall()
        for plan in self._planned():
            mark = self._marks.get(plan.hook)
            if mark is None or not _is_counted_on(mark, plan, now):
                await self._look_again(plan)

    async def _begin(self, due: Sequence[str]) -> None:
        """Call the hooks that are due, as they are now, and forget those that are gone."""
        planned = {plan.hook: plan for plan in self._planned()}
        for hook in due:
            if plan := planned.get(hook):
                await self._look_again(plan)
            else:
                self._marks.pop(hook, None)
                await self._engine.purge(subjects.schedule_subject_of(hook))

    async def _look_again(self, plan: ScheduledHook) -> None:
        """Look at one hook, again whenever another gateway has moved its mark meanwhile."""
        while True:
            try:
                due = await self._look_at(plan)
            except Conflict:
                self._marks.pop(plan.hook, None)
            else:
                self._timer.put(plan.hook, due)
                return

    async def _look_at(self, plan: ScheduledHook) -> float:
        """Call a hook if it is due; return its next moment."""
        wall, now, _ = self._clocks.read()
        timetable = read_timetable(plan.timetable, "")
        mark = self._marks.get(plan.hook) or await self._read(plan.hook)
        if plan.presence == "off":  # nothing is written while it is off; its timetable begins anew with `hook:loaded`
            if self._marks.pop(plan.hook, mark):
                await self._engine.purge(subjects.schedule_subject_of(plan.hook))
            return NEVER
        if mark is None or not _is_counted_on(mark, plan, wall):
            mark = await self._write(plan, ScheduleMark(plan.timetable, wall, mark.seq if mark else 0))
        self._marks[plan.hook] = mark
        due = timetable.latest(mark.at, now)
        if due is not None:
            if plan.presence == "away":
                return now + LOOK
            mark = ScheduleMark(plan.timetable, due, mark.seq)
            mark = self._marks[plan.hook] = await self._emit(plan, mark, now)
        return timetable.next_after(mark.at)

    async def _emit(self, plan: ScheduledHook, mark: ScheduleMark, now: float) -> ScheduleMark:
        name = f"schedule:{plan.hook}"
        fields = {
            "id": f"{name}:{mark.at:.3f}",
            "time": now,
            "cause": None,
            "resumed": False,
            "due": mark.at,
            "late_by": round(max(0.0, now - mark.at), 3),
        }
        event = records.make_event_put(records.EmittedEvent(name=name, fields=fields), f"ev:{fields['id']}")
        mark = await self._write(plan, mark, *([event] if plan.is_durable else []))
        self._registry.emit(name, **fields)
        return mark

    async def _read(self, hook: str) -> ScheduleMark | None:
        where = subjects.schedule_subject_of(hook)
        seq, kept = await records.read_last(self._engine, where, records.StoredValue)
        return msgspec.structs.replace(msgspec.convert(kept.value, ScheduleMark), seq=seq) if kept else None

    async def _write(self, plan: ScheduledHook, mark: ScheduleMark, *owed: NewRecord) -> ScheduleMark:
        """Move the mark, in one append with the events that are `owed`.

        Raises:
            Conflict: another gateway has moved it.
        """
        where = subjects.schedule_subject_of(plan.hook)
        kept = records.StoredValue(hook=plan.hook, key=KEY, value={"timetable": mark.timetable, "at": mark.at})
        put = NewRecord(where, records.encode(kept), expect=mark.seq)
        try:
            seq = (await self._engine.append(*owed, put))[-1]
        except Duplicate:  # the event is in the journal already
            seq = (await self._engine.append(put))[0]
        await self._engine.purge(where, seq - 1)
        return msgspec.structs.replace(mark, seq=seq)


def _is_counted_on(mark: ScheduleMark, plan: ScheduledHook, now: float) -> bool:
    """Tell whether a timetable goes on from its mark: it is the same, and the clock was not set back by far."""
    return mark.timetable == plan.timetable and mark.at <= now + LONGEST_JUMP
