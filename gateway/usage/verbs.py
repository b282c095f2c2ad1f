"""The verb of usage: sums by person, model, day, hook or session."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from gateway.verbs import Verb, show

UsageKey: TypeAlias = Literal["person", "model", "day", "hook", "session"]
"""A key by which usage can be summed up."""


class UsageParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last days with today; of one person, or of all."""

    by: UsageKey = "person"
    days: Annotated[int, msgspec.Meta(ge=1, le=36_600)] = 30
    person: str = ""


_USED = show(
    *("name", "tokens", "input_tokens", "output_tokens", "cached_tokens", "cache_written_tokens", "reasoning_tokens"),
    *("calls", "cost", "unpriced", "estimated"),
)
_USAGE = {
    **show("by", "since", "until", "counted_since", "prices_of"),
    "rows": _USED,
    "total": _USED,
    "budgets": show("budget", "window", "period", "unit", "used", "limit", "held"),
}

VERBS = (Verb("usage", "Sum up usage and cost.", UsageParams, "operator", shown=_USAGE, page="look", raw=True),)
