"""Scheduled hooks: each gets the event `schedule:<hook>` when its `schedule:` is due.

The mark of the last event is in the journal before the event is sent, so that a restart repeats none; for a durable
hook the same append has the event, so that a crash in between loses none either. Times that were missed (the gateway
was down, the machine asleep, the hook broken) are made up for by one event, which says how late it is. Times at which
the hook was switched off are skipped.

The wall clock decides, and is read again every few seconds, since people and time servers set it. If it is put forward,
hooks become due; if it is put back a little, nothing is repeated until it is where it was. If it was wrong by more than
an hour, the count restarts.

If several gateways share a journal, one does this at a time. Should two do it for a moment, only one sends the event:
each mark is written on the condition that it follows the one that was read.
"""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import anyio
import anyio.abc
import msgspec

from gateway.engine.interface import Engine, NewRecord
from gateway.errors import Conflict, Duplicate
from gateway.hooks import HookRegistry
from gateway.records import records, subjects
from gateway.yaml_source.timetable import parse_timetable

LOOK = 5.0  # seconds between two looks at the wall clock, at most
LONGEST_JUMP = 3600.0  # seconds by which the clock may go back and still be the same clock
KEY = "schedule"  # its name in the registry

log = logging.getLogger(__name__)

HookPresence = Literal["there", "away", "off"]


class ScheduledHook(NamedTuple):
    """A hook with a timetable. `away`: it cannot receive the event now, but wants it; `off`: it does not want it."""

    hook: str
    timetable: str
    presence: HookPresence
    is_durable: bool


class ScheduleMark(msgspec.Struct, frozen=True):
    """The time of a hook's last event, by this timetable."""

    timetable: str
    at: float
    seq: int = 0  # of its record


class Scheduler:
    """The scheduler. `planned` lists the present hooks with a timetable."""

    def __init__(
        self,
        engine: Engine,
        registry: HookRegistry,
        planned: Callable[[], Iterable[ScheduledHook]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._registry = registry
        self._planned = planned
        self._clock = clock
        self._marks: dict[str, ScheduleMark] = {}
        self._woken = anyio.Event()

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        self._marks.clear()  # another gateway may have moved them
        leave = self._registry.watch(("hook:loaded", "hook:failed"), self._wake, key=KEY)
        task_status.started()
        try:
            while True:
                self._woken = anyio.Event()
                pause = await self.look()
                with anyio.move_on_after(min(pause, LOOK)):
                    await self._woken.wait()
        finally:
            leave()

    def _wake(self, _name: str, _event: Any) -> None:
        self._woken.set()

    async def look(self) -> float:
        """Tell whom it is time for; the seconds until the next one."""
        planned = list(self._planned())
        for hook in self._marks.keys() - {plan.hook for plan in planned}:
            del self._marks[hook]
            await self._engine.purge(subjects.schedule_subject_of(hook))
        return min([await self._look_again(plan) for plan in planned], default=LOOK)

    async def _look_again(self, plan: ScheduledHook) -> float:
        """As often as others move its mark meanwhile."""
        while True:
            try:
                return await self._look_at(plan)
            except Conflict:
                self._marks.pop(plan.hook, None)

    async def _look_at(self, plan: ScheduledHook) -> float:
        now, timetable = self._clock(), parse_timetable(plan.timetable)
        mark = self._marks.get(plan.hook) or await self._read(plan.hook)
        if mark is None or mark.timetable != plan.timetable or mark.at > now + LONGEST_JUMP:
            mark = await self._write(plan, ScheduleMark(plan.timetable, now, mark.seq if mark else 0))
        self._marks[plan.hook] = mark
        due = None if plan.presence == "away" else timetable.latest(mark.at, now)
        if due is not None:
            mark = ScheduleMark(plan.timetable, due, mark.seq)
            mark = await (self._tell(plan, mark, now) if plan.presence == "there" else self._write(plan, mark))
            self._marks[plan.hook] = mark
        return LOOK if plan.presence == "away" else max(0.0, timetable.next_after(mark.at) - now)

    async def _tell(self, plan: ScheduledHook, mark: ScheduleMark, now: float) -> ScheduleMark:
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
        record = await self._engine.last(subjects.schedule_subject_of(hook))
        if record is None:
            return None
        kept = records.decode(record.data)
        assert isinstance(kept, records.StoredValue)
        return msgspec.structs.replace(msgspec.convert(kept.value, ScheduleMark), seq=record.seq)

    async def _write(self, plan: ScheduledHook, mark: ScheduleMark, *owed: NewRecord) -> ScheduleMark:
        """Move the mark, in the append of its pending events.

        Raises:
            Conflict: another gateway has moved it.
        """
        where = subjects.schedule_subject_of(plan.hook)
        kept = records.StoredValue(hook=plan.hook, key=KEY, value={"timetable": mark.timetable, "at": mark.at})
        put = NewRecord(where, records.encode(kept), expect=mark.seq)
        try:
            seq = (await self._engine.append(*owed, put))[-1]
        except Duplicate:  # the event is there already
            seq = (await self._engine.append(put))[0]
        await self._engine.purge(where, seq - 1)
        return msgspec.structs.replace(mark, seq=seq)
