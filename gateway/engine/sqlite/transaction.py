"""One commit in the making: what its operations see, and what they leave to be done once it stands."""

import math
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field

# Sequence, subject, data, time: a Record before anybody asked for one.
Row = tuple[int, str, bytes, float]


@dataclass(slots=True)
class Transaction:
    """Operations of many callers, committed together or not at all.

    What an operation remembers outside of the database it changes in `committed`, never at once: the transaction may
    still be rolled back, and the operation be tried again in another.
    """

    db: sqlite3.Connection
    wall: float
    steady: float
    appended: list[Row] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    # When, by the wall clock, the time of each of the appended is over, and of the first of them.
    over: dict[int, float] = field(default_factory=dict)
    over_at: float = math.inf
    # Consumers: those that something was taken from, those that may have something to fetch, how far they have come
    # by now and whether that is the end of the log, those whose depth is asked for.
    consumers_to_recount: set[str] = field(default_factory=set)
    consumers_to_wake: set[str] = field(default_factory=set)
    places: dict[str, tuple[int, bool]] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)
    # What to remember once the commit stands; what was measured replaces what was reckoned, and so comes last.
    committed: list[Callable[[], None]] = field(default_factory=list)
    measured: list[Callable[[], None]] = field(default_factory=list)
