"""The answer with the record of activity."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from gateway.records.activity import Activity
from gateway.records.verbs import NEWEST, ActivityParams


async def activity_list(activity: Activity, params: ActivityParams) -> Any:
    if params.last:
        found, before = await activity.read_last(params.before or NEWEST, params.last, params.since)
        return {"activity": _select(params, found), "next": 0, "before": before}
    found, upto = await activity.read(params.after, params.since)
    return {"activity": _select(params, found), "next": upto}


def _select(params: ActivityParams, found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in found if fnmatchcase(one["who"], params.who) and fnmatchcase(one["what"], params.what)]
