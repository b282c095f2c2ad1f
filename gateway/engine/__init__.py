"""The journal: what it promises stands in `interface`; one SQLite file keeps it, or memory alone."""

from gateway.engine.interface import (
    Clock,
    Consumer,
    ConsumerSpec,
    Delivery,
    Engine,
    EngineHealth,
    Lease,
    NewRecord,
    Record,
    RequestHandler,
    StopServing,
    Tail,
)
from gateway.engine.sqlite.engine import SqliteEngine, open_sqlite
from gateway.engine.subjects import matches
from gateway.errors import Conflict, Duplicate, EngineError, EngineTooNew

__all__ = [
    "Clock",
    "Conflict",
    "Consumer",
    "ConsumerSpec",
    "Delivery",
    "Duplicate",
    "Engine",
    "EngineError",
    "EngineHealth",
    "EngineTooNew",
    "Lease",
    "NewRecord",
    "Record",
    "RequestHandler",
    "SqliteEngine",
    "StopServing",
    "Tail",
    "matches",
    "open_sqlite",
]
