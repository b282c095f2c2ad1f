"""Answers about usage: sums by person, model, day, hook or session."""

import datetime
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from gateway.config.providers import PRICES_DATE
from gateway.messages.transcript import Usage
from gateway.records.records import DayUsage, UsageRow
from gateway.usage.usage_journal import UsageJournal
from gateway.usage.verbs import UsageKey, UsageParams

NAMES: Mapping[UsageKey, Callable[[DayUsage, UsageRow], str]] = {
    "person": lambda _day, row: row.person,
    "model": lambda _day, row: row.usage.model,
    "day": lambda day, _row: day.day,
    "hook": lambda _day, row: row.hook,
    "session": lambda _day, row: row.session_id,
}


async def usage(usage: UsageJournal, params: UsageParams) -> Any:
    today = usage.totals.today()
    since = (today - datetime.timedelta(days=params.days - 1)).isoformat()
    days = [day async for day in usage.read_days(since)]
    rows = collect_usage(days, params.by, params.person)
    return {
        "by": params.by,
        "since": since,
        "until": today.isoformat(),
        "counted_since": days[0].day if days else None,
        "prices_of": PRICES_DATE,
        "rows": [{"name": name, **as_fields(used)} for name, used in rows.items()],
        "total": as_fields(sum(rows.values(), Usage())),
        "budgets": [one.as_fields() for one in usage.totals.list_budgets(params.person)],
    }


def collect_usage(days: Iterable[DayUsage], by: UsageKey, person: str = "") -> dict[str, Usage]:
    """Sum up by name: the most first, days in their order. Usage without a hook or a session has the empty name."""
    find_name, sums = NAMES[by], dict[str, Usage]()
    for day in days:
        for row in day.rows:
            if person in ("", row.person):
                name = find_name(day, row)
                sums[name] = sums.get(name, Usage()) + row.usage
    if by == "day":
        return sums
    return dict(sorted(sums.items(), key=lambda one: (-one[1].cost, -one[1].tokens, one[0])))


def as_fields(used: Usage) -> dict[str, Any]:
    """Return the fields, without a cost if no call has a known price; `unpriced` counts the calls without one."""
    fields: dict[str, Any] = msgspec.to_builtins(used)
    del fields["model"]
    is_unknown = used.unpriced == used.calls and used.calls > 0
    return fields | {"tokens": used.tokens, "cost": None if is_unknown else round(used.cost, 10)}
