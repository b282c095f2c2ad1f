"""The journal: what it promises stands in `interface`; one SQLite file keeps it, or memory alone."""

from gateway.engine.interface import Clock, ConsumerSpec, Engine, EngineHealth, NewRecord, Record
from gateway.engine.sqlite.engine import SqliteEngine, open_sqlite
from gateway.engine.subjects import matches

__all__ = [
    "Clock",
    "ConsumerSpec",
    "Engine",
    "EngineHealth",
    "NewRecord",
    "Record",
    "SqliteEngine",
    "matches",
    "open_sqlite",
]
