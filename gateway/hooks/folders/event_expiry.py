"""Events that durable hooks were owed for too long: a dead letter each, and then they leave the journal.

An event has no limit in its record, since a hook may be broken, switched off or away, and is owed it all the same. Once
an hour what is older than a week is looked through: what a hook has not taken by then becomes a dead letter, which
stays until somebody decides; what all have taken goes. A crash in between is made up for the next time: a dead letter
is named after the event, and is not written twice.
"""

import logging
from collections.abc import Callable

import anyio

from gateway import record_subjects, records
from gateway.engine.interface import Engine, Record
from gateway.engine.journal_position import load_position
from gateway.errors import Duplicate, EngineError
from gateway.hooks.folders.dead_letters import TOKEN_PREFIX, make_dead_letter_put
from gateway.yaml_source.units import format_count

LOOK_EVERY = 3600.0  # seconds
PAGE = 100
REASON = "it did not take this within seven days"

log = logging.getLogger("gateway.hooks")


class EventExpiry:
    """`name_of` gives the folder's name of a hook that is known by its consumer."""

    def __init__(self, engine: Engine, name_of: Callable[[str], str]) -> None:
        self._engine = engine
        self._name_of = name_of

    async def run(self) -> None:
        """Look, until cancelled."""
        while True:
            await anyio.sleep(LOOK_EVERY)
            try:
                await self.expire()
            except EngineError as error:
                log.warning("events that nobody takes wait for the journal: %s", error)

    async def expire(self) -> None:
        """Do it once, by the journal's clock: whoever sets that of the machine makes nothing old."""
        if self._engine.clock.is_held:
            return
        until = self._engine.clock.read() - records.EVENT_TTL
        for token in [token for token in await self._engine.consumers() if token.startswith(TOKEN_PREFIX)]:
            if count := await self._bury(token, until):
                hook = self._name_of(token)
                told = format_count(count, "event")
                log.error("%s did not take %s within seven days; each is a dead letter now", hook, told)
        for pattern in (
            record_subjects.EVENT_SUBJECTS,
            record_subjects.OWED_EVENT_SUBJECTS,
            record_subjects.RETRY_SUBJECTS,
        ):
            await self._purge(pattern, until)

    async def _bury(self, token: str, until: float) -> int:
        """Make dead letters of what this hook was owed; how many it were."""
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
        for after, upto in load_position(self._engine.shards()).list_ranges():
            while page := await self._engine.read(pattern, after, PAGE, upto=upto):
                old = [record.seq for record in page if record.ts < until]
                if old:
                    await self._engine.purge(pattern, old[-1], after=after)
                if len(old) < len(page):
                    break
