"""Figures of a node over time, as the journal keeps them: a record for each half hour, and one for each day.

The records are sums, which can be added up over nodes. They name no person.
"""

import msgspec

from gateway.messages.steps import JournalRecord


class WorkTotal(msgspec.Struct, frozen=True, omit_defaults=True):
    """The work in a span of time: ended turns, tokens and cost of models, and the calls of hooks."""

    turns: int = 0
    failed: int = 0
    tokens: int = 0
    cost: float = 0.0
    calls: int = 0
    failures: int = 0

    def __add__(self, other: "WorkTotal") -> "WorkTotal":
        return WorkTotal(*map(sum, zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)))


class HalfHour(JournalRecord, tag="half_hour", frozen=True, kw_only=True, omit_defaults=True):
    """A half hour, `at` its beginning.

    `times` are the counts of a histogram: from a message to its answer. `messages` are counted by network. `hooks` has
    the calls and failures of those hooks that were called or failed most; `work` has those of all.
    """

    work: WorkTotal = WorkTotal()
    times: tuple[int, ...] = ()
    messages: dict[str, int] = msgspec.field(default_factory=dict)
    hooks: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)


class FigureDay(JournalRecord, tag="figure_day", frozen=True, kw_only=True, omit_defaults=True):
    """A day in UTC, `at` its beginning, with its hours by number."""

    hours: dict[int, WorkTotal] = msgspec.field(default_factory=dict)
