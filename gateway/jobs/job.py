"""A job: a text for the agent, or a command, at one moment, or at the moments of a timetable.

A moment is a job and the instant at which it is due. `20m` counts on the journal's steady clock, so setting the wall
clock does not shift it; a time, a cron line and `every 2h` go by the wall clock.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from gateway.errors import AgentError
from gateway.logs.text import to_one_line
from gateway.messages.message import Address
from gateway.messages.roles import Role
from gateway.yaml_source.timetable import Interval, Timetable, parse_timetable
from gateway.yaml_source.units import format_duration, parse_duration

MAX_AHEAD = 10 * 366 * 86_400.0
SHORTEST_INTERVAL = 60.0
MOST_COUNTED = 10_000  # moments that were missed in a row
MOST_ROWS, LONGEST_KEPT = 1000, 90 * 86_400.0  # of the history of a job
SILENT = "[SILENT]"  # the gateway does not send this answer to a job
BY_HAND = "paused by hand"  # at the terminal, or on the page; the agent does not resume it
MOST_FAILURES = 5
LONGEST_LINE = 200  # characters of a job in a list
TOO_OFTEN = f"failed {MOST_FAILURES} times in a row"
STRANGER = "its maker may not speak here any more"
IN_CHAT = "paused in its conversation"
GRACE = 60.0  # seconds by which a moment may be late without being missed
WRONG_TIME = "{when!r} is not a time; write 20m, 3h, 2d, 2030-12-31T09:00, `every 2h` or a cron line as `0 9 * * 1-5`"

Missed: TypeAlias = Literal["once", "skip"]
Overlap: TypeAlias = Literal["skip", "queue"]
MomentState: TypeAlias = Literal["running", "ran", "skipped", "failed", "missed"]


class Moment(msgspec.Struct, frozen=True):
    """The state of a moment, or of `count` that were missed in a row, up to `until`."""

    due: float
    state: MomentState
    reason: str = ""
    late_by: float = 0.0
    until: float = 0.0
    count: int = 1
    answer: str = ""


class Job(msgspec.Struct, frozen=True):
    """A job, and how far it has come: `since` is its last moment, `running` are those without an end.

    `origin` is where it was made, and `address` where its answer goes. It has at most the `role` of the turn that made
    it; `is_internal`: that turn was no person's, but answered for by `person`. `at` is its one moment; 0: it repeats.
    `ahead`: by how many seconds the wall clock was ahead then; None: it goes by the wall clock. `asked` is a moment
    of `jobs run`. `paused` is the reason. `last` is the last moment that has ended, without its answer. `named` is the
    name by which the chat of `address` was found. `runs` are the times at which it began within an hour, by the steady
    clock. `reached` is when it was made, or how far it had come when the clock was set back; before it, none is missed.

    A `command` runs in the place of a text; `allowed` is the digest of the one that a person has allowed. A crash that
    cuts off a `repeatable` one has it run again. The URL `ping` is called when a moment went well.
    """

    id: str
    name: str
    maker: str
    when: str
    text: str
    address: Address
    origin: Address
    session_key: str
    user_id: str
    since: float
    role: Role = "owner"
    is_internal: bool = False
    person: str = ""
    zone: str = ""
    at: float = 0.0
    ahead: float | None = None
    agent: str = ""
    missed: Missed = "once"
    overlap: Overlap = "skip"
    max_time: float = 600.0
    asked: float = 0.0
    paused: str = ""
    failures: int = 0
    running: tuple[float, ...] = ()
    last: Moment | None = None
    command: str = ""
    allowed: str = ""
    repeatable: bool = False
    model: str = ""
    ping: str = ""
    named: str = ""
    runs: tuple[float, ...] = ()
    reached: float = 0.0

    @property
    def is_over(self) -> bool:
        """True if no moment will come."""
        return bool(self.at) and self.since >= self.at and not self.asked

    def find_next(self) -> float | None:
        """Return the next moment by the wall clock of its making, or None."""
        if self.asked:
            return self.asked
        if self.paused or self.is_over:
            return None
        return self.at or self._find_after(self.since)

    def list_next(self, until: float, most: int) -> list[float]:
        """List its next moments up to this time, at most so many."""
        due, found = None if self.paused or self.is_over else self.at or self._find_after(self.since), list[float]()
        while due is not None and due <= until and len(found) < most:
            found.append(due)
            due = None if self.at else self._find_after(due)
        return found

    def _find_after(self, moment: float) -> float:
        return read_timetable(self.when, self.zone).next_after(moment)

    def find_due(self, now: float, steady: float) -> "DueMoments | None":
        """Return the moments that are due at this time of the wall clock, and of the steady one."""
        if self.asked:
            return DueMoments(self.asked, self.asked, 1, max(0.0, now - self.asked))
        if self.paused or self.is_over:
            return None
        if self.at:
            late = now - self.at if self.ahead is None else steady - (self.at - self.ahead)
            return DueMoments(self.at, self.at, 1, late) if late >= 0 else None
        return count_moments(read_timetable(self.when, self.zone), self.since, now)


class DueMoments(msgspec.Struct, frozen=True):
    """Moments that are due, of which the last one counts; those before it were missed, up to `previous`."""

    first: float
    last: float
    count: int
    late_by: float
    previous: float = 0.0


class JobTime(NamedTuple):
    """A time as a person wrote it: `at` and `ahead` as in a job."""

    at: float
    ahead: float | None


def parse_time(when: str, zone: str, now: float, ahead: Callable[[], float] = float) -> JobTime:
    """Read a time. Raises AgentError when it is none, past, more than ten years ahead, or too often."""
    text = when.strip()
    if (duration := parse_duration(text)) is not None:
        return JobTime(_check_ahead(when, now + duration, now), ahead())
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return JobTime(_check_timetable(text, zone), None)
    return JobTime(
        _check_ahead(when, (moment if moment.tzinfo else moment.replace(tzinfo=find_zone(zone))).timestamp(), now), None
    )


def _check_ahead(when: str, at: float, now: float) -> float:
    if at <= now:
        raise AgentError(f"{when!r} is past")
    if at > now + MAX_AHEAD:
        raise AgentError(f"{when!r} is more than ten years ahead")
    return at


def _check_timetable(when: str, zone: str) -> float:
    if not when.startswith("@") and len(when.split()) < 2:
        raise AgentError(WRONG_TIME.format(when=when))
    try:
        timetable = read_timetable(when, zone)
    except ValueError as error:
        raise AgentError(f"{when!r} {error}") from None
    if isinstance(timetable, Interval) and timetable.seconds < SHORTEST_INTERVAL:
        raise AgentError(f"{when!r} is too often: the shortest interval is 1m")
    return 0.0


@lru_cache(1024)
def read_timetable(when: str, zone: str) -> Timetable:
    """Return the timetable of a text. Raises ValueError if it is none."""
    return parse_timetable(when, find_zone(zone))


def find_zone(name: str) -> tzinfo | None:
    """Return the zone of this name; None is the machine's. Raises AgentError if it is unknown."""
    if not name:
        return None
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - few name one, and each start would load it

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise AgentError(f"the time zone {name!r} was not found; write one as Europe/Berlin") from None


def count_moments(timetable: Timetable, since: float, now: float) -> DueMoments | None:
    """Count the moments after `since` up to now; of very many, only the first ones."""
    first = timetable.next_after(since)
    if first > now:
        return None
    if isinstance(timetable, Interval):
        count = int((now - since) // timetable.seconds)
        last = since + count * timetable.seconds
        return DueMoments(first, last, count, now - last, last - timetable.seconds)
    last, count, previous = first, 1, 0.0
    for due in timetable.times_after(first):  # in one pass: each search from the start begins at a midnight
        if due > now or count == MOST_COUNTED:
            break
        if due > last:
            last, count, previous = due, count + 1, last
    if count == MOST_COUNTED:
        previous, last = last, timetable.latest(last, now) or last
    return DueMoments(first, last, count, now - last, previous)


def find_history_limit(job: Job, now: float) -> float:
    """Return for how many seconds a row of the history is kept, so that there are about a thousand at most."""
    if job.at:
        return LONGEST_KEPT
    found = count_moments(read_timetable(job.when, job.zone), now, now + 86_400.0)
    return min(LONGEST_KEPT, 86_400.0 * MOST_ROWS / found.count) if found else LONGEST_KEPT


def digest_of(command: str) -> str:
    """Return the digest of a command, to which its approval is bound."""
    return hashlib.sha256(command.encode()).hexdigest()


def describe_moment(at: float, zone: str) -> str:
    """Write a moment for a person, by the clock of the zone."""
    return f"{datetime.fromtimestamp(at, find_zone(zone)).astimezone(find_zone(zone)):%Y-%m-%d %H:%M %Z}"


def describe_times(job: Job, called: str = "") -> str:
    """Say in one line when a job comes, without its text."""
    due = job.at or read_timetable(job.when, job.zone).next_after(job.since)
    facts = [describe_moment(due, job.zone), *([] if job.at else [job.when]), *(["paused"] if job.paused else [])]
    facts += ["over"] if job.is_over else []
    return f"{called or job.name}: {', '.join(facts)}"


def describe_job(job: Job, called: str = "") -> str:
    """Say in one short line when a job comes, and how its last moment ended; a long text is cut."""
    last = _cut(f" [last: {describe_end(job.last, job.zone)}]", LONGEST_LINE // 2) if job.last else ""
    line = f"{describe_times(job, called)}: {job.text or job.command}"
    return f"{_cut(line, LONGEST_LINE - len(last))}{last}"


def _cut(text: str, limit: int) -> str:
    line = to_one_line(text, limit)
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


def describe_end(moment: Moment, zone: str) -> str:
    """Say in one line what became of a moment."""
    late = f", {format_duration(round(moment.late_by))} late" if moment.late_by >= GRACE else ""
    more = f" ({moment.count} up to {describe_moment(moment.until, zone)})" if moment.count > 1 else ""
    reason = f": {moment.reason}" if moment.reason else ""
    return f"{describe_moment(moment.due, zone)}{more}: {moment.state}{late}{reason}"
