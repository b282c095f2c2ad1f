"""Small stores in the journal: each hook has one, and so have parts of the gateway. The last value of a key counts."""

from collections.abc import AsyncIterator
from typing import Any

from gateway.engine.interface import Engine, NewRecord, Record
from gateway.records import records, subjects


def make_value_put(
    owner: str, key: str, value: Any, *, expect: int | None = None, ttl: float | None = None
) -> NewRecord:
    """Make the append of a value to the owner's store."""
    kept = records.StoredValue(hook=owner, key=key, value=value)
    return NewRecord(subjects.hook_store_subject_of(owner, key), records.encode(kept), expect=expect, ttl=ttl)


def read_store(engine: Engine, owner: str, *, fresh: bool = True) -> AsyncIterator[tuple[Record, records.StoredValue]]:
    """Yield all values of a store, in order."""
    return records.read_all(engine, subjects.hook_store_subject_of(owner), records.StoredValue, fresh=fresh)
