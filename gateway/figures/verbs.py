"""The verb of figures over time."""

from typing import Literal

import msgspec

from gateway.verbs import Shown, Verb, show


class FiguresParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The half hours of two days, or the hours of 30 days."""

    by: Literal["half_hour", "hour"] = "half_hour"


_WORK = show("turns", "failed", "tokens", "cost", "calls", "failures")
_SPAN: dict[str, Shown] = {"at": True, "work": _WORK, "times": True, "messages": {"*": True}, "hooks": {"*": True}}

VERBS = (
    Verb(
        "figures",
        "Show figures over time.",
        FiguresParams,
        "operator",
        shown={**show("now", "bounds"), "spans": _SPAN},
        page="shared",
    ),
)
