"""The journal: what it promises stands in `interface`; one SQLite file keeps it, or memory alone."""

from gateway.engine.interface import ConsumerSpec, Engine, EngineHealth, NewRecord, Record, SettledRecords
from gateway.engine.journal_clock import Clock, JournalClock
from gateway.engine.sqlite.engine import SqliteEngine, open_sqlite
from gateway.engine.subjects import matches

__all__ = [
    "Clock",
    "ConsumerSpec",
    "Engine",
    "EngineHealth",
    "JournalClock",
    "NewRecord",
    "Record",
    "SettledRecords",
    "SqliteEngine",
    "matches",
    "open_sqlite",
]
