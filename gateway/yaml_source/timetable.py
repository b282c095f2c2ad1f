"""Timetables as people write them: a cron line (`0 9 * * 1-5`), `@daily`, or an interval (`every 15m`).

A cron line has minute, hour, day, month and weekday (0 or 7 is Sunday), as numbers, names, lists, ranges and steps;
where both day and weekday are restricted, either will do. It goes by the clock on the wall. When that is put forward,
a time of day that is skipped comes as much later; when it is put back, a time of day comes once, while a line for
every hour (`*/10 * * * *`) goes on through the hour that comes twice.
"""

import calendar
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import NamedTuple, TypeAlias

from gateway.yaml_source.units import format_duration, parse_duration

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MIN_INTERVAL = 1.0
MAX_INTERVAL = 366 * 86_400.0
SEARCH_DAYS = 366 * 9  # between two 29ths of February there can be eight years
FIRST_SEARCH_SECONDS, SEARCH_GROWTH = 60.0, 16

_DAYS = ("", *(name.lower() for name in calendar.day_abbr))
_MONTHS = tuple(name.lower() for name in calendar.month_abbr)
_ITEM = re.compile(r"(\*|[a-z0-9]+)(?:-([a-z0-9]+))?(?:/(\d{1,4}))?\Z")


class Interval(NamedTuple):
    """An interval from any moment: the last time, or the first look."""

    seconds: float

    def next_after(self, moment: float) -> float:
        """Return the first time after this one, in seconds since 1970 like all times here."""
        return moment + self.seconds

    def latest(self, since: float, until: float) -> float | None:
        """Return the last time that is after `since` and not after `until`, or None."""
        times = int((until - since) // self.seconds)
        return since + times * self.seconds if times > 0 else None


class CronField(NamedTuple):
    """One of the five fields: its name, and its allowed values."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()  # each at its number


CRON_FIELDS = (
    CronField("minute", 0, 59),
    CronField("hour", 0, 23),
    CronField("day", 1, 31),
    CronField("month", 1, 12, _MONTHS),
    CronField("weekday", 0, 7, _DAYS),
)


class Cron(NamedTuple):
    """A cron line. `zone` is the zone of its wall clock; None is this machine's."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 1 is Monday, 7 Sunday
    is_any_day: bool
    is_any_weekday: bool
    is_hourly: bool
    zone: tzinfo | None = None

    def next_after(self, moment: float) -> float:
        """Return the first time after this one; raises ValueError if it never comes."""
        found = next(self.times_after(moment), None)
        if found is None:
            raise ValueError("names a day that never comes")
        return found

    def times_after(self, moment: float) -> Iterator[float]:
        """Yield the times after this one; where the clock is put forward, one may come twice or out of its order."""
        return self._every_hour(moment) if self.is_hourly else self._at_hours(moment)

    def latest(self, since: float, until: float) -> float | None:
        """Return the last time that is after `since` and not after `until`, or None."""
        span = FIRST_SEARCH_SECONDS
        while True:  # looked for near the end first, since there may be a year in between
            begin = max(since, until - span)
            found, due = None, self.next_after(begin)
            while due <= until:
                found, due = due, self.next_after(due)
            if found is not None or begin == since:
                return found
            span *= SEARCH_GROWTH

    def _every_hour(self, moment: float) -> Iterator[float]:
        """Yield the times hour by hour, as the hours really pass."""
        at = (moment // 60 + 1) * 60
        end = moment + SEARCH_DAYS * 86_400.0
        while at < end:
            wall = datetime.fromtimestamp(at, self.zone)
            if not self._has_day(wall):
                midnight = wall.replace(hour=0, minute=0, tzinfo=None, fold=0) + timedelta(days=1)
                at = max(self._stamp(midnight), at + 60)
            elif wall.hour not in self.hours:
                at += (60 - wall.minute) * 60
            elif wall.minute not in self.minutes:
                later = min((minute for minute in self.minutes if minute > wall.minute), default=60)
                at += (later - wall.minute) * 60
            else:
                yield at
                at += 60

    def _at_hours(self, moment: float) -> Iterator[float]:
        """Yield the times day by day, as the wall clock shows them."""
        day = datetime.fromtimestamp(moment, self.zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        for later in range(SEARCH_DAYS):
            wall = day + timedelta(days=later)
            if self._has_day(wall):
                times = (
                    self._stamp(wall.replace(hour=hour, minute=minute))
                    for hour in sorted(self.hours)
                    for minute in sorted(self.minutes)
                )
                yield from (at for at in times if at > moment)

    def _stamp(self, wall: datetime) -> float:
        return wall.replace(tzinfo=self.zone).timestamp()

    def _has_day(self, wall: datetime) -> bool:
        if wall.month not in self.months:
            return False
        by_day, by_weekday = wall.day in self.days, wall.isoweekday() in self.weekdays
        if self.is_any_day or self.is_any_weekday:
            return by_day and by_weekday
        return by_day or by_weekday


Timetable: TypeAlias = Interval | Cron


def parse_timetable(text: str, zone: tzinfo | None = None) -> Timetable:
    """Parse a timetable. Raises ValueError with the fault and the remedy."""
    words = text.lower().split()
    if words[:1] == ["every"]:
        return _parse_interval("".join(words[1:]))
    line = MACROS.get(words[0], "").split() if len(words) == 1 else words
    if len(line) != len(CRON_FIELDS):
        raise ValueError('is not a timetable; write "0 9 * * 1-5" (minute, hour, day, month, weekday), or every 15m')
    values = [_parse_field(field, word) for field, word in zip(CRON_FIELDS, line, strict=True)]
    minutes, hours, days, months, weekdays = values
    _, by_hour, by_day, _, by_weekday = (word.startswith("*") for word in line)
    every_week = frozenset(day or 7 for day in weekdays)
    cron = Cron(minutes, hours, days, months, every_week, by_day, by_weekday, by_hour, zone)
    cron.next_after(0.0)
    return cron


def _parse_interval(text: str) -> Interval:
    seconds = parse_duration(text)
    if seconds is None:
        raise ValueError("has no interval behind `every`; write every 15m, every 1h30m or every 2d")
    if not MIN_INTERVAL <= seconds <= MAX_INTERVAL:
        raise ValueError(f"has an interval of {format_duration(seconds)}; it is at least 1s and at most 366d")
    return Interval(seconds)


def _parse_field(field: CronField, text: str) -> frozenset[int]:
    found: set[int] = set()
    for item in text.split(","):
        match = _ITEM.match(item)
        if match is None or (match[1] == "*" and match[2]) or match[3] == "0":
            raise ValueError(f"has {item!r} where its {field.name} should be; write one of: 5  1,3  1-5  */10  *")
        step = int(match[3] or 1)
        if match[1] == "*":
            first, last = field.low, field.high - (field.name == "weekday")
        else:
            first = _parse_number(field, match[1])
            last = _parse_number(field, match[2]) if match[2] else field.high if match[3] else first
        if first > last:
            raise ValueError(f"has the {field.name} {item!r}, which ends before it begins")
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _parse_number(field: CronField, word: str) -> int:
    if word in field.names and word:
        return field.names.index(word)
    if not word.isdecimal() or not field.low <= int(word) <= field.high:
        names = f" or {', '.join(filter(None, field.names))}" if field.names else ""
        raise ValueError(f"has the {field.name} {word!r}; it is {field.low} to {field.high}{names}")
    return int(word)
