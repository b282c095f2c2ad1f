"""Answers about usage: sums by person, model, day, hook or session."""

import datetime
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from gateway.config.providers import PRICES_DATE
from gateway.messages.transcript import Usage, add_usage
from gateway.records.names import KnownNames, fold_name
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


async def usage(usage: UsageJournal, names: KnownNames, params: UsageParams) -> Any:
    today = usage.totals.today()
    since = (today - datetime.timedelta(days=params.days - 1)).isoformat()
    days = [day async for day in usage.read_days(since)]
    rows = select_usage(collect_usage(days, params.by, params.person), names, params)
    shown = list(rows.items())[: None if params.limit < 0 else params.limit]
    budgets = [one.as_fields() for one in usage.totals.list_budgets(params.person)]
    people = [*(name for name, _ in shown), *(one["budget"].rpartition(" ")[2] for one in budgets)]
    return {
        "by": params.by,
        "since": since,
        "until": today.isoformat(),
        "counted_since": days[0].day if days else None,
        "prices_of": PRICES_DATE,
        "rows": [{"name": name, **as_fields(used)} for name, used in shown],
        "count": len(rows),
        "total": as_fields(add_usage([*rows.values()])),
        "budgets": budgets,
        "names": names.describe(people),
    }


def select_usage(rows: Mapping[str, Usage], names: KnownNames, params: UsageParams) -> dict[str, Usage]:
    """Return the rows that match, in the wanted order."""
    named = names.people.search(params.search) if params.search else frozenset()
    found = {name: used for name, used in rows.items() if params.search.casefold() in name.casefold() or name in named}
    match params.sort:
        case "name":
            return dict(sorted(found.items(), key=lambda one: fold_name(names.people.find(one[0]) or one[0])))
        case "cost" | "tokens" | "calls":
            return dict(sorted(found.items(), key=lambda one: (-getattr(one[1], params.sort), one[0])))
    return found


def collect_usage(days: Iterable[DayUsage], by: UsageKey, person: str = "") -> dict[str, Usage]:
    """Sum up by name: the most first, days in their order. Usage without a hook or a session has the empty name."""
    find_name, found = NAMES[by], dict[str, list[Usage]]()
    for day in days:
        for row in day.rows:
            if person in ("", row.person):
                found.setdefault(find_name(day, row), []).append(row.usage)
    sums = {name: add_usage(used) for name, used in found.items()}
    if by == "day":
        return sums
    return dict(sorted(sums.items(), key=lambda one: (-one[1].cost, -one[1].tokens, one[0])))


def as_fields(used: Usage) -> dict[str, Any]:
    """Return the fields, without a cost if no call has a known price; `unpriced` counts the calls without one."""
    fields: dict[str, Any] = msgspec.structs.asdict(used)
    del fields["model"]
    is_unknown = used.unpriced == used.calls and used.calls > 0
    return fields | {"tokens": used.tokens, "cost": None if is_unknown else round(used.cost, 10)}
