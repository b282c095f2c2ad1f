"""The expiry of events for durable hooks.

Delivered events expire when the journal needs room; undelivered events become dead letters after a week.

Delivered events can be replayed until the gateway removes them. When the journal is nearly full, the gateway removes
the oldest delivered events, so that events never stop the journal from taking messages; an event stays while any hook
has not received it.

The record of an event has no expiry, since a broken, disabled or missing hook still waits for the event. Once an hour,
the gateway checks events older than a week: an event that a hook has not taken becomes a dead letter, which stays until
a person decides; an event that all hooks have taken is removed. After a crash, the next check completes the work: a
dead letter is named after its event, and cannot be written twice.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby

import anyio
import msgspec

from gateway.engine.interface import Engine, Record
from gateway.errors import Duplicate, EngineError
from gateway.hooks.durable.dead_letters import list_durable, make_dead_letter_put
from gateway.records import records, subjects
from gateway.yaml_source.units import format_count

LOOK_EVERY = 3600.0  # seconds
PAGE = 100
# of the journal's bound: above the first share, delivered events are removed, down to the second
FULL_SHARE, TARGET_SHARE = 0.8, 0.7
LOOK_SHARE = 0.05  # of the bound: bytes delivered before the next check of the journal's size
PATTERNS = (subjects.EVENT_SUBJECTS, subjects.OWED_EVENT_SUBJECTS, subjects.RETRY_SUBJECTS)
REASON = "it did not take this within seven days"

log = logging.getLogger("gateway.hooks")


class EventExpiry(msgspec.Struct, eq=False):
    """The removal of old events. `name_of` returns the folder's name for a hook's consumer."""

    _engine: Engine
    _name_of: Callable[[str], str]
    _left: float = 0.0  # bytes to deliver before the next check
    _is_due: anyio.Event = msgspec.field(default_factory=anyio.Event)

    def note_told(self, size: int) -> None:
        """Note that a hook has received events of `size` bytes."""
        self._left -= size
        if self._left <= 0:
            self._is_due.set()

    async def run(self) -> None:
        """Check the journal's size and the age of its events until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run_hourly)
            while True:
                await self._is_due.wait()
                await self._try(self.make_room)
                self._is_due = anyio.Event()

    async def _run_hourly(self) -> None:
        while True:
            await anyio.sleep(LOOK_EVERY)
            await self._try(self.expire)

    async def _try(self, act: Callable[[], Awaitable[None]]) -> None:
        try:
            await act()
        except EngineError as error:
            log.warning("old events of durable hooks wait for the journal: %s", error)

    async def make_room(self) -> None:
        """Remove events that every hook has received, oldest first, until a nearly full journal has room."""
        health = await self._engine.health()
        self._left = LOOK_SHARE * health.bound or math.inf
        if not health.bound or health.size < FULL_SHARE * health.bound:
            return
        before, told = health.size, 0
        for pattern in PATTERNS:
            after = 0
            while page := await self._engine.read(pattern, after, PAGE):
                told += await self._remove_told(pattern, page)
                after = page[-1].seq
                if (await self._engine.health()).size < TARGET_SHARE * health.bound:
                    log.info("the journal had %d bytes; removed, told: %s", before, format_count(told, "event"))
                    return

    async def _remove_told(self, pattern: str, page: Sequence[Record]) -> int:
        """Remove the events of a page that no hook waits for."""
        pending = set[int]()
        for token in await list_durable(self._engine):
            pending |= await self._list_pending(token, page[0].seq, page[-1].seq)
        told = 0
        for is_pending, group in groupby(page, lambda record: record.seq in pending):
            if not is_pending:
                some = [record.seq for record in group]
                told += await self._engine.purge(pattern, some[-1], after=some[0] - 1)
        return told

    async def _list_pending(self, token: str, first: int, last: int) -> set[int]:
        found = list[int]()
        while page := await self._engine.list_owed(token, math.inf, found[-1] if found else first - 1, PAGE):
            found += [record.seq for record in page]
            if found[-1] >= last:
                break
        return set(found)

    async def expire(self) -> None:
        """Expire old events once, by the journal's clock: a change of the host's clock makes no event old."""
        if self._engine.clock.is_held:
            return
        until = self._engine.clock.read() - records.EVENT_TTL
        for token in await list_durable(self._engine):
            if count := await self._bury(token, until):
                hook = self._name_of(token)
                told = format_count(count, "event")
                log.error("%s did not take %s within seven days; each is a dead letter now", hook, told)
        for pattern in PATTERNS:
            await self._purge(pattern, until)

    async def _bury(self, token: str, until: float) -> int:
        """Make dead letters of this hook's old events; return their number."""
        after = count = 0
        while page := await self._engine.list_owed(token, until, after, PAGE):
            for record in page:
                count += await self._bury_one(token, record)
            after = page[-1].seq
        return count

    async def _bury_one(self, token: str, record: Record) -> bool:
        try:
            await self._engine.append(make_dead_letter_put(token, self._name_of(token), record, REASON, attempts=0))
        except Duplicate:
            return False
        return True

    async def _purge(self, pattern: str, until: float) -> None:
        while page := await self._engine.read(pattern, limit=PAGE):
            old = [record.seq for record in page if record.ts < until]
            if old:
                await self._engine.purge(pattern, old[-1])
            if len(old) < len(page):
                break
