"""Timetables: what a line means, on which moments it falls, and what is not a timetable."""

import contextlib
import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.yaml_source.timetable import parse_timetable

BERLIN = ZoneInfo("Europe/Berlin")
UTC = ZoneInfo("UTC")


def at(text: str, zone: ZoneInfo = BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()


def falls(line: str, begin: str, count: int, zone: ZoneInfo = BERLIN) -> list[str]:
    """The next so many moments, as the clock on the wall shows them."""
    timetable, moment, found = parse_timetable(line, zone), at(begin, zone), []
    for _ in range(count):
        moment = timetable.next_after(moment)
        found.append(datetime.fromtimestamp(moment, zone).strftime("%a %d %b %H:%M"))
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0 9 * * 1-5", ["Mon 05 Jan 09:00", "Tue 06 Jan 09:00"]),
        ("*/20 * * * *", ["Sat 03 Jan 12:20", "Sat 03 Jan 12:40"]),
        ("5-10/5 8,20 * * *", ["Sat 03 Jan 20:05", "Sat 03 Jan 20:10"]),
        ("0 0 1 * *", ["Sun 01 Feb 00:00", "Sun 01 Mar 00:00"]),
        ("0 0 * * SUN", ["Sun 04 Jan 00:00", "Sun 11 Jan 00:00"]),
        ("0 0 * * 7", ["Sun 04 Jan 00:00", "Sun 11 Jan 00:00"]),
        ("0 0 * * 0", ["Sun 04 Jan 00:00", "Sun 11 Jan 00:00"]),
        ("0 0 * feb-apr mon", ["Mon 02 Feb 00:00", "Mon 09 Feb 00:00"]),
        ("30 12 6 * tue", ["Tue 06 Jan 12:30", "Tue 13 Jan 12:30"]),  # the day or the weekday
        ("0 0 29 2 *", ["Tue 29 Feb 00:00", "Sun 29 Feb 00:00"]),
        ("0 */6 * * *", ["Sat 03 Jan 18:00", "Sun 04 Jan 00:00"]),
        ("@hourly", ["Sat 03 Jan 13:00", "Sat 03 Jan 14:00"]),
        ("@daily", ["Sun 04 Jan 00:00", "Mon 05 Jan 00:00"]),
        ("every 90m", ["Sat 03 Jan 13:30", "Sat 03 Jan 15:00"]),
        ("every 1d", ["Sun 04 Jan 12:00", "Mon 05 Jan 12:00"]),
    ],
)
def test_a_line_falls_on_these_moments(line: str, expected: list[str]) -> None:
    assert falls(line, "2026-01-03T12:00", 2) == expected


def test_a_time_of_day_that_the_clock_skips_comes_an_hour_later() -> None:
    assert falls("30 2 * * *", "2026-03-28T12:00", 2) == ["Sun 29 Mar 03:30", "Mon 30 Mar 02:30"]


def test_a_time_of_day_that_comes_twice_counts_once() -> None:
    assert falls("30 2 * * *", "2026-10-24T12:00", 2) == ["Sun 25 Oct 02:30", "Mon 26 Oct 02:30"]


def test_a_line_for_every_hour_goes_on_through_the_hour_that_comes_twice() -> None:
    line = parse_timetable("*/30 * * * *", BERLIN)
    moment, found = at("2026-10-25T01:30"), []
    for _ in range(4):
        found.append(line.next_after(moment) - moment)
        moment += found[-1]
    assert found == [1800] * 4
    assert falls("*/30 * * * *", "2026-10-25T01:30", 4) == [f"Sun 25 Oct {time}" for time in ["02:00", "02:30"] * 2]


@pytest.mark.parametrize(
    ("line", "since", "until", "expected"),
    [
        ("0 9 * * *", "2026-01-03T10:00", "2026-01-04T08:59", None),
        ("0 9 * * *", "2026-01-03T10:00", "2026-01-04T09:00", "2026-01-04T09:00"),
        ("0 9 * * *", "2026-01-03T10:00", "2026-06-01T08:00", "2026-05-31T09:00"),
        ("* * * * *", "2020-01-03T10:00", "2026-06-01T08:00", "2026-06-01T08:00"),
        ("0 0 1 1 *", "2020-01-03T10:00", "2026-06-01T08:00", "2026-01-01T00:00"),
        ("every 1h", "2026-01-03T10:00", "2026-01-03T13:30", "2026-01-03T13:00"),
        ("every 1h", "2026-01-03T10:00", "2026-01-03T10:59", None),
        ("every 1h", "2026-01-03T10:00", "2026-01-03T09:00", None),
    ],
)
def test_the_latest_of_many_that_were_missed(line: str, since: str, until: str, expected: str | None) -> None:
    found = parse_timetable(line, BERLIN).latest(at(since), at(until))
    assert found == (at(expected) if expected else None)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "is not a timetable"),
        ("0 9 * *", "is not a timetable"),
        ("daily", "is not a timetable"),
        ("60 9 * * *", "has the minute '60'; it is 0 to 59"),
        ("0 9 * * fry", "has the weekday 'fry'; it is 0 to 7 or mon, tue, wed, thu, fri, sat, sun"),
        ("0 9-5 * * *", "has the hour '9-5', which ends before it begins"),
        ("0 9 */0 * *", "where its day should be"),
        ("0 9 *-3 * *", "where its day should be"),
        ("0 9 30 2 *", "names a day that never comes"),
        ("every", "has no interval"),
        ("every day", "has no interval"),
        ("every 100ms", "has an interval of 100ms"),
    ],
)
def test_what_is_no_timetable_is_refused_with_its_remedy(line: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        parse_timetable(line)


@given(st.text(max_size=40))
def test_no_text_does_harm(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse_timetable(text, UTC).next_after(0) > 0


minutes = st.sampled_from(["*", "*/7", "0", "30", "0,15", "10-40/10"])
hours = st.sampled_from(["*", "*/5", "2", "3", "0,23"])
days = st.sampled_from(["*", "1", "29", "*/9"])
weekdays = st.sampled_from(["*", "0", "1-5"])


@given(st.tuples(minutes, hours, days, st.just("*"), weekdays), st.integers(1_700_000_000, 1_800_000_000))
def test_the_next_one_is_later_and_none_lies_between(words: tuple[str, ...], moment: int) -> None:
    line = parse_timetable(" ".join(words), BERLIN)
    due = line.next_after(moment)
    assert due > moment
    assert line.latest(moment, due - 1) is None
    assert line.latest(moment, due) == due
    assert line.next_after(due - 1) == due
