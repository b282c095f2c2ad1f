"""Sums of usage: kept by the journal, folded by day, the same however often the process ends in between."""

import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from gateway.config.settings import GatewaySettings, Settings
from gateway.engine.interface import NewRecord
from gateway.hooks import HookRegistry
from gateway.messages.transcript import Usage
from gateway.records import records, subjects
from gateway.usage.call_usage import BudgetPort, CallUsage
from gateway.usage.totals import RunningTotals, describe_end
from gateway.usage.turn_usage import TurnUsage, UsageOrigin
from gateway.usage.usage_journal import UsageJournal
from tests.spine import SetClock, engine, key  # noqa: F401 - a fixture

HOOKS = HookRegistry().scope({})
PORT = BudgetPort("user", HOOKS.run, HOOKS.emit)
BERLIN = ZoneInfo("Europe/Berlin")


def at(year: int, month: int, day: int, hour: int, minute: int = 0) -> float:
    return datetime(year, month, day, hour, minute, tzinfo=BERLIN).timestamp()


def journal_on(engine, clock=time.time) -> UsageJournal:  # noqa: F811
    settings = Settings(gateway=GatewaySettings(timezone="Europe/Berlin"))
    return UsageJournal(engine, RunningTotals(clock, settings))


async def count(journal, engine, person="net:ann", tokens=10, **origin) -> None:  # noqa: F811
    turn = TurnUsage(UsageOrigin(person, **origin))
    calls = CallUsage(journal.totals, turn, PORT)
    assert await calls.ask("m", 5) == ""
    calls.count(Usage(tokens, 1, calls=1, cost=0.5, model="m"), "m", 5)
    await turn.write(engine)


async def rows_of(journal) -> dict[str, dict[str, int]]:
    return {day.day: {row.person: row.usage.calls for row in day.rows} async for day in journal.read_days()}


async def test_calls_are_summed_and_folded_when_their_day_is_over(engine):  # noqa: F811
    clock = SetClock(at(2026, 1, 31, 23, 59))
    journal = journal_on(engine, clock)
    for person in ("net:ann", "net:ann", "net:ben"):
        await count(journal, engine, person)
    assert await rows_of(journal) == {"2026-01-31": {"net:ann": 2, "net:ben": 1}}
    assert await journal.fold(settled=0.0) == 0  # the day is not over
    clock.now = at(2026, 2, 1, 0, 1)
    await count(journal, engine)
    assert await journal.fold(settled=0.0) == 4
    assert len(await engine.read("gw.usage.>", limit=100)) == 3  # a record a day, and up to where
    assert await rows_of(journal) == {"2026-01-31": {"net:ann": 2, "net:ben": 1}, "2026-02-01": {"net:ann": 1}}
    await count(journal, engine)
    again = journal_on(engine, clock)
    await again.load()
    assert again.totals.get("2026-02-01", ["net:ann"]) == journal.totals.get("2026-02-01", ["net:ann"]) == (22, 1.0)
    assert again.totals.get("2026-01") == (0, 0.0)  # last month is nobody's budget any more


async def test_many_calls_of_one_day_are_folded_before_it_is_over(engine):  # noqa: F811
    journal = journal_on(engine)
    for _ in range(5):
        await count(journal, engine)
    assert await journal.fold(settled=0.0, most=5) == 5
    assert await journal.fold(settled=0.0, most=5) == 0
    assert [list(day.values()) for day in (await rows_of(journal)).values()] == [[5]]


async def test_what_was_folded_counts_once_when_the_process_ends_before_it_is_removed(engine):  # noqa: F811
    """The fold's own append is there, what comes after it is not."""
    journal = journal_on(engine)
    for _ in range(3):
        await count(journal, engine)
    (day,) = [day async for day in journal.read_days()]
    upto = (await engine.read(subjects.USAGE_SUBJECT, limit=100))[-1].seq
    subject = subjects.day_subject_of(day.day)
    older = NewRecord(subject, records.encode(records.DayUsage(day=day.day, rows=())))
    cursor = NewRecord(subjects.FOLDED_SUBJECT, records.encode(records.UsageCursor(upto=upto)))
    await engine.append(older, cursor, NewRecord(subject, records.encode(day)))
    again = journal_on(engine)
    await again.load()
    assert again.totals.get(day.day).tokens == 33
    assert [list(day.values()) for day in (await rows_of(again)).values()] == [[3]]
    assert len(await engine.read(subject)) == 1


async def test_what_an_append_has_written_after_all_is_not_written_twice(engine):  # noqa: F811
    """Whoever was cut off in the middle of an append does not know whether it is written."""
    journal, turn = journal_on(engine), TurnUsage(UsageOrigin("net:ann"))
    CallUsage(journal.totals, turn, PORT).count(Usage(1, 1, calls=1), "m", 0)
    await engine.append(*turn.waiting)
    await turn.write(engine)
    assert turn.waiting == ()
    assert len(await engine.read(subjects.USAGE_SUBJECT)) == 1


async def test_a_person_gets_another_name_in_all_days(engine):  # noqa: F811
    clock = SetClock(at(2026, 1, 31, 12))
    journal = journal_on(engine, clock)
    for day in (31, 30):
        clock.now = at(2026, 1, day, 12)
        for person in ("net:ann", "other:7", "net:ben"):
            await count(journal, engine, person)
    assert await journal.rename(["net:ann", "other:7"], "forgotten-1") == 2
    assert await rows_of(journal) == {day: {"net:ben": 1, "forgotten-1": 2} for day in ("2026-01-30", "2026-01-31")}
    assert not any(b"net:ann" in one.data for one in await engine.read("gw.usage.>", limit=100))


@pytest.mark.parametrize(
    ("moment", "day", "end"),
    [
        ((2026, 3, 29, 1, 59), "2026-03-29", "2026-03-30"),  # the night in which an hour is missing
        ((2026, 3, 29, 23, 59), "2026-03-29", "2026-03-30"),
        ((2026, 10, 25, 23, 59), "2026-10-25", "2026-10-26"),  # the day that has 25
        ((2026, 12, 31, 23, 59), "2026-12-31", "2027-01-01"),
    ],
)
def test_days_and_months_end_where_the_time_zone_says(moment, day, end):
    clock = SetClock(at(*moment))
    totals = journal_on(None, clock).totals
    assert totals.windows() == (day, day[:7])
    assert end in describe_end(day, totals.today())
    clock.now += 61
    after = "2026-03-29" if moment[3] == 1 else end
    assert totals.windows()[0] == after


def test_the_totals_keep_no_more_than_they_are_asked_for():
    clock = SetClock(at(2026, 1, 1, 12))
    totals = journal_on(None, clock).totals
    for _ in range(400):
        day, _month = totals.windows()
        totals.add(day, records.UsageRow("net:ann", Usage(1, 0, calls=1)))
        clock.now += 86_400
    assert len(totals._sums) <= 4
