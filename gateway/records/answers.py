"""The answer with the record of activity."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from gateway.records.activity import Activity
from gateway.records.names import KnownNames
from gateway.records.verbs import NEWEST, ActivityParams


async def activity_list(activity: Activity, names: KnownNames, params: ActivityParams) -> Any:
    if params.last:
        found, before = await activity.read_last(params.before or NEWEST, params.last, params.since)
        return {**_describe(names, params, found), "next": 0, "before": before}
    found, upto = await activity.read(params.after, params.since)
    return {**_describe(names, params, found), "next": upto}


def _describe(names: KnownNames, params: ActivityParams, found: Iterable[dict[str, Any]]) -> dict[str, Any]:
    rows = [one for one in found if _is_meant(names, params, one)]
    ids = {word for one in rows for field in ("who", "on") for word in one[field].split()}
    return {"activity": rows, "names": names.describe(sorted(ids))}


def _is_meant(names: KnownNames, params: ActivityParams, row: dict[str, Any]) -> bool:
    called = (row["who"], *(one["name"] for one in names.describe((row["who"],)).values()))
    return any(fnmatchcase(one, params.who) for one in called) and fnmatchcase(row["what"], params.what)
