"""Jobs with a day behind them: some run, one fails, one was missed twice, one is paused, one will come."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from gateway.engine.interface import Engine
from gateway.jobs.job import BY_HAND, Job, Moment, MomentState
from gateway.jobs.journal import JobJournal, make_row_put
from gateway.messages.message import Address
from gateway.messages.roles import Role

HOUR = 3600.0
OWNER: Role = "owner"
HERE, NOWHERE = Address("terminal", "main"), Address("internal", "job")
FULL = "the disk is full"
ANSWER = "All notes are saved: 1,204 files, 3 of them new."


def make_job(name: str, when: str, text: str, now: float, **more: Any) -> Job:
    key = f"agent:main:internal:dm:job:{name}"
    job = Job(name, name, "terminal:owner", when, text, NOWHERE, HERE, key, "owner", now, OWNER)
    return replace(job, **more)


def list_moments(now: float, hours: float, states: str) -> Iterator[Moment]:
    """Yield moments so many hours apart, the last one an hour ago, by the first letters of their states."""
    for number, letter in enumerate(reversed(states)):
        due = now - HOUR - number * hours * HOUR
        state: MomentState = {"r": "ran", "f": "failed", "s": "skipped"}.get(letter, "missed")  # type: ignore[assignment]
        reason = {"failed": FULL, "missed": "the gateway was not there", "skipped": "the moment before it still runs"}
        yield Moment(due, state, reason.get(state, ""), 2.0, due, 1, ANSWER if state == "ran" else "")


async def write_jobs(engine: Engine, now: float) -> None:
    """Leave them in a gateway that ran before."""
    jobs = JobJournal(engine)
    planned = (
        (make_job("morning-brief", "0 7 * * 1-5", "What is on today?", now), list_moments(now, 24, "rrrrrrrrrr")),
        (
            make_job("backup-notes", "every 2h", "Save my notes.", now, failures=2),
            list_moments(now, 2, "rrrrrmrrrrrrff"),
        ),
        (
            make_job("server-watch", "every 30m", "Is anything wrong in /var/log/site?", now, address=HERE),
            list_moments(now, 0.5, "rrrrrrrrrmmrrrrrrrrrrrrrrrrr"),
        ),
        (make_job("dream-journal", "30 22 * * *", "Ask me about the day.", now, paused=BY_HAND), iter(())),
        (make_job("invoices", "0 9 1 * *", "Which invoices are open?", now), list_moments(now - 143 * HOUR, 24, "r")),
        (make_job("dentist", "5h", "Call the dentist", now, at=now + 5 * HOUR, ahead=0.0, address=HERE), iter(())),
    )
    for job, moments in planned:
        rows = sorted(moments, key=lambda one: one.due)
        for row in rows:
            await engine.append(make_row_put(job, row))
        await jobs.add(replace(job, last=replace(rows[-1], answer="") if rows else None))
