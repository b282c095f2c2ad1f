"""The answer about figures over time: those that each node has written, and those of this node's open half hour."""

from typing import Any

import msgspec

from gateway.figures.half_hours import HalfHours
from gateway.figures.verbs import FiguresParams
from gateway.histogram import SECONDS


async def figures(half_hours: HalfHours, params: FiguresParams) -> Any:
    """List the spans of time in which something happened, the oldest first."""
    spans = await (half_hours.list_hours() if params.by == "hour" else half_hours.list_half_hours())
    rows = [{**msgspec.to_builtins(one), "work": msgspec.structs.asdict(one.work)} for one in spans]
    return {"now": half_hours.clock(), "bounds": SECONDS, "spans": rows}
