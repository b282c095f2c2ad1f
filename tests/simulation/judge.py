"""What a simulation must hold: each message is answered once, each due moment has one end."""

from collections import Counter
from collections.abc import Iterable, Sequence

from gateway.jobs.job import Job, Moment, read_timetable
from gateway.jobs.journal import JobJournal
from gateway.messages.message import Reply
from tests.audit import audit
from tests.engine.memory_engine import MemoryEngine
from tests.siege.job_verdict import JobVerdict, judge_ends, list_lost
from tests.simulation.world import BEGUN, WORLD

SLACK = 120.0  # seconds before the end whose moments may still be on their way


async def judge(engine: MemoryEngine, outcome: JobVerdict, made: Sequence[Job], sent: Sequence[Reply]) -> None:
    """Write faults and counts into the outcome."""
    found = await audit(engine, is_sent=True)
    if outcome.counts["messages"]:  # weeks are longer than the journal keeps what was delivered
        outcome.faults += found.faults
    outcome.counts["retries"] = found.retries
    twice = [name for name, count in Counter(one.id for one in sent).items() if count > 1]
    outcome.faults += [f"shown twice: {name}" for name in twice]
    jobs, now = JobJournal(engine), WORLD.wall()
    answers = Counter(one.text.rpartition(" ")[2] for one in sent)
    for job in made:
        stored = await jobs.read(f"{job.maker}/{job.name}")
        rows = await jobs.read_history(job, 1_000_000)
        for one in rows:
            outcome.count_row(one.state, one.count)
        outcome.faults += judge_job(stored.job if stored else job, job, rows, answers[job.name], now)


def judge_job(job: Job, made: Job, rows: Sequence[Moment], answers: int, now: float) -> Iterable[str]:
    what = f"{job.name} ({job.when} {job.zone}, {job.missed}, {job.overlap}, made at {made.since})"
    yield from judge_ends(what, Counter(one.state for one in rows), answers)
    elapsed = BEGUN + WORLD.steady - made.reached  # a clock that is behind passes earlier times, but no more of them
    for one in [one for one in rows if one.state == "missed" and one.due <= made.reached]:
        if one.until - one.due > elapsed:
            yield f"missed before it was made: {what}: {one.count} moments from {one.due} to {one.until}"
    for due in list_lost_of(job, made, rows, now):
        yield f"lost: {what} was due at {due}"


def list_lost_of(job: Job, made: Job, rows: Sequence[Moment], now: float) -> list[float]:
    """List the moments of a job that no row has.

    A job that is made while the clock is behind counts from the time at which it is right again.
    """
    if job.paused:
        return []
    spans = [(one.due, one.until or one.due) for one in rows]
    if job.at:
        is_due = WORLD.wall() - SLACK > job.at if job.ahead is None else job.at - job.ahead < now - SLACK
        return [] if spans or not is_due else [job.at]
    return list_lost(read_timetable(job.when, job.zone), max(made.since, made.reached), now - SLACK, spans)
