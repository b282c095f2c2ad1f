"""The verb of the log."""

from typing import Annotated, Literal

import msgspec

from gateway.logs.lines import CONTEXT_KEYS
from gateway.verbs import Verb, show

MOST_LINES = 1000


class LogParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last lines that are wanted; or, after a place that an answer named, all that came since then."""

    lines: Annotated[int, msgspec.Meta(ge=0, le=MOST_LINES)] = 50
    level: Literal["", "debug", "info", "warning", "error", "critical"] = ""
    hook: str = ""
    session: str = ""
    since: float = 0.0
    text: str = ""
    after: Annotated[str, msgspec.Meta(pattern=r"^([0-9]{1,20}-[0-9]{1,18})?\Z")] = ""


_LINE = {**show("time", "level", "logger"), "context": show(*CONTEXT_KEYS)}
_LINES = {**show("next", "gap"), "lines": _LINE}

VERBS = (Verb("logs.read", "Read lines of the log.", LogParams, "operator", shown=_LINES, page="look"),)
