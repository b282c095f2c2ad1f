"""The answer to `/usage` in a chat: the usage of the person and, for admins, of everyone."""

from collections.abc import Iterable

from gateway.messages.transcript import Usage
from gateway.questions.places import as_plain_name
from gateway.records.records import UsageRow
from gateway.usage.usage_journal import UsageJournal
from gateway.yaml_source.units import format_count

MOST_PEOPLE = 10


async def describe_usage(journal: UsageJournal, session: Usage, person: str, *, is_all: bool) -> str:
    """Describe the usage of this session, and of the person today and this month; if `is_all`, of everyone too."""
    today, month = journal.totals.windows()
    days = [day async for day in journal.read_days(f"{month}-01")]
    this_month = [row for day in days for row in day.rows]
    this_day = [row for day in days if day.day == today for row in day.rows]
    lines = [describe_session(session)]
    for name, rows in (("Today", this_day), ("This month", this_month)):
        lines.append(f"{name}, you: {_describe(row.usage for row in rows if row.person == person)}.")
        if is_all:
            lines.append(f"{name}, all: {_describe(row.usage for row in rows)}.")
    lines += [f"{one.budget.partition(' ')[0]}: {one.describe()}." for one in journal.totals.list_budgets(person)]
    return "\n".join([*lines, *(_list_people(this_month) if is_all else ())])


def describe_session(used: Usage) -> str:
    cost = f", for {used.cost:.4f}" if used.cost else ""
    calls = format_count(used.calls, "call")
    return (
        f"{format_count(used.input_tokens, 'token')} read, {used.output_tokens} written, in {calls} of the model{cost}."
    )


def _list_people(rows: Iterable[UsageRow]) -> Iterable[str]:
    """List the people with the highest usage this month."""
    sums: dict[str, Usage] = {}
    for row in rows:
        sums[row.person] = sums.get(row.person, Usage()) + row.usage
    most = sorted(sums.items(), key=lambda one: (-one[1].cost, -one[1].tokens))[:MOST_PEOPLE]
    return (f"- {as_plain_name(name)}: {_describe([used])}" for name, used in most)


def _describe(found: Iterable[Usage]) -> str:
    used = sum(found, Usage())
    if not used.calls:
        return "nothing"
    said = f"{used.tokens} tokens in {format_count(used.calls, 'call')}"
    if used.unpriced == used.calls:
        return f"{said}, at a price that is not known"
    return f"{said}, for {used.cost:.4f}{' and more, of which the price is not known' if used.unpriced else ''}"
