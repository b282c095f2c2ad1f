"""The journal: what it promises stands in `interface`; one SQLite file keeps it, or memory alone."""

from gateway.engine.clock import Clock
from gateway.engine.interface import (
    Answer,
    Consumer,
    Delivery,
    Engine,
    Health,
    Lease,
    Put,
    Record,
    Spec,
    Tail,
    Unserve,
    matches,
)
from gateway.engine.memory import MemoryEngine
from gateway.engine.sqlite.engine import SqliteEngine, open_sqlite
from gateway.errors import Conflict, Duplicate, EngineError, EngineTooNew

__all__ = [
    "Answer",
    "Clock",
    "Conflict",
    "Consumer",
    "Delivery",
    "Duplicate",
    "Engine",
    "EngineError",
    "EngineTooNew",
    "Health",
    "Lease",
    "MemoryEngine",
    "Put",
    "Record",
    "Spec",
    "SqliteEngine",
    "Tail",
    "Unserve",
    "matches",
    "open_sqlite",
]
