"""The searches of the web that each person caused today, in the journal: a limit that a restart does not lift.

A record has a digest of the person and no more, counts one day, and expires after two.
"""

from collections.abc import Callable
from datetime import date

import msgspec

from gateway.engine.interface import Engine
from gateway.errors import Conflict
from gateway.records import records, subjects
from gateway.records.stores import make_value_put

LIFETIME = 2 * 86_400.0


class SearchCount(msgspec.Struct, eq=False):
    """Counts by the days of `gateway.timezone`; `find_limit` returns the number of searches in one."""

    _engine: Engine
    _today: Callable[[], date]
    _find_limit: Callable[[], int]

    async def take(self, person: str) -> bool:
        """Count one more search of this person; return False, without counting, if the day has no more."""
        key = subjects.token_of(f"search {person}")
        where = subjects.hook_store_subject_of(subjects.SEARCHES, key)
        while True:
            day = self._today().isoformat()
            seq, kept = await records.read_last(self._engine, where, records.StoredValue)
            count = kept.value["count"] if kept and kept.value["day"] == day else 0
            if count >= self._find_limit():
                return False
            value = {"day": day, "count": count + 1}
            put = make_value_put(subjects.SEARCHES, key, value, expect=seq, ttl=LIFETIME)
            try:
                (written,) = await self._engine.append(put)
            except Conflict:  # another search of theirs came first
                continue
            await self._engine.purge(where, written - 1)
            return True
