"""The verb of usage: sums by person, model, day, hook or session."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from gateway.records.verbs import SHOWN_NAMES
from gateway.verbs import Verb, show

UsageKey: TypeAlias = Literal["person", "model", "day", "hook", "session"]
"""A key by which usage can be summed up."""
UsageOrder: TypeAlias = Literal["", "cost", "tokens", "calls", "name"]


class UsageParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last days with today; of one person, or of all. At most so many rows (-1: all) of those who match.

    `search`: a part of a row's name, or of the name of its person. `sort`: by cost, tokens or calls, the most first, or
    by name; days are in their order, unless it says otherwise.
    """

    by: UsageKey = "person"
    days: Annotated[int, msgspec.Meta(ge=1, le=36_600)] = 30
    person: str = ""
    search: str = ""
    sort: UsageOrder = ""
    limit: Annotated[int, msgspec.Meta(ge=-1, le=1 << 31)] = -1


_USED = show(
    *("name", "tokens", "input_tokens", "output_tokens", "cached_tokens", "cache_written_tokens", "reasoning_tokens"),
    *("calls", "cost", "unpriced", "estimated"),
)
_USAGE = {
    **show("by", "since", "until", "counted_since", "prices_of", "count"),
    "rows": _USED,
    "names": SHOWN_NAMES,
    "total": _USED,
    "budgets": show("budget", "window", "period", "unit", "used", "limit", "held"),
}

VERBS = (Verb("usage", "Sum up usage and cost.", UsageParams, "operator", shown=_USAGE, page="look", raw=True),)
