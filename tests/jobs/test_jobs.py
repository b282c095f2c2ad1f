"""Jobs: each moment runs once, in its time, and ends in the journal, whatever the clock does and whenever we end."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import msgspec
import pytest

from gateway.agent.toolbox.chat import make_chat_tools
from gateway.config.node_settings import JobSettings
from gateway.engine.interface import NewRecord
from gateway.errors import AgentError, Conflict
from gateway.jobs.job import (
    LONGEST_LINE,
    STRANGER,
    TOO_OFTEN,
    Job,
    Moment,
    count_moments,
    describe_job,
    find_history_limit,
    parse_time,
    read_timetable,
)
from gateway.jobs.journal import JobJournal
from gateway.jobs.messages import DUE_TEXT
from gateway.jobs.runner import SPENT, STILL_RUNNING, JobPorts, JobRunner
from gateway.jobs.timer import Clocks
from gateway.messages.message import Message
from gateway.people.person import Person
from gateway.people.traces import is_of
from gateway.records import records, subjects
from gateway.records.stores import make_value_put
from tests.dispatcher.room import KEY, ROOM, chat
from tests.jobs.house import NOON, House
from tests.spine import until


@pytest.mark.parametrize(
    ("when", "seconds"), [("20m", 1200), (" 1h30m ", 5400), ("2d", 172_800), ("2030-01-01T12:30", 1800)]
)
def test_a_time_is_a_while_ahead_or_a_moment(when: str, seconds: float) -> None:
    assert parse_time(when, "UTC", NOON).at == NOON + seconds
    assert (parse_time(when, "UTC", NOON).ahead is None) == ("T" in when)


@pytest.mark.parametrize("when", ["every 2h", "0 9 * * 1-5", "@daily", " every 1m "])
def test_a_timetable_has_no_moment_of_its_own(when: str) -> None:
    assert parse_time(when, "UTC", NOON) == (0.0, None)


@pytest.mark.parametrize(
    ("when", "words"),
    [
        *((one, r"write 20m, 3h|is past") for one in ("soon", "", "2029-12-31T12:00", "0m", "2030-13-01")),
        *((one, "is more than ten years ahead") for one in ("4000d", "2041-01-01")),
        ("every 30s", "the shortest interval is 1m"),
        ("0 9 * *", "is not a timetable"),
        ("61 9 * * *", "where its minute should be|it is 0 to 59"),
    ],
)
def test_a_time_that_is_none_says_how_one_is_written(when: str, words: str) -> None:
    with pytest.raises(AgentError, match=words):
        parse_time(when, "UTC", NOON)


async def test_each_moment_runs_once_and_has_an_end(house: House) -> None:
    job = await house.add()
    for hour in (1, 2):
        house.now = NOON + hour * 3600
        await house.run_until_all_ended()
        await house.run_until_all_ended()
    assert await house.rows(job) == [(1, "ran", ""), (2, "ran", "")]
    assert [one.id for one in house.came] == [f"job-tea-{NOON + hour * 3600:.3f}" for hour in (1, 2)]
    assert [name for name, _ in house.told] == ["job:due", "job:done"] * 2
    assert house.told[0][1] == {"job": "tea", "maker": "net:7", "due": NOON + 3600, "late_by": 0.0, "reason": ""}


@pytest.mark.parametrize(
    ("missed", "rows"),
    [
        ("once", [(1, "missed", "the next one ran"), (5, "ran", "")]),
        ("skip", [(1, "missed", "the gateway was not there")]),
    ],
)
async def test_of_moments_that_were_missed_the_last_runs_or_none(house: House, missed: Any, rows: Any) -> None:
    job = await house.add(missed=missed)
    house.now = NOON + 5.5 * 3600
    await house.run_until_all_ended()
    assert await house.rows(job) == rows
    (gone,) = [one for one in await house.jobs.read_history(job) if one.state == "missed"]
    assert (gone.count, gone.until) == ((4, NOON + 4 * 3600) if missed == "once" else (5, NOON + 5 * 3600))
    assert [facts["late_by"] for name, facts in house.told if name == "job:done"] == [1800.0] * (missed == "once")


async def test_a_moment_that_a_crash_cut_off_ends_in_the_next_process(house: House) -> None:
    job = await house.add()
    house.now = NOON + 3600
    await house.runner().look()  # nothing is planned yet: it is loaded when it runs
    async with anyio.create_task_group() as tasks:
        await tasks.start(house.runner().run)
        await until(lambda: bool(house.came))
        tasks.cancel_scope.cancel()  # as a crash: nothing is written
    assert await house.rows(job) == [(1, "running", "")]
    await house.end("failed", error="the model is gone")
    await house.run_until_all_ended()
    assert await house.rows(job) == [(1, "failed", "the model is gone")]
    assert len(house.came) == 1


@pytest.mark.parametrize(("overlap", "most"), [("skip", 1), ("queue", 2)])
async def test_a_moment_comes_while_the_one_before_still_runs(house: House, overlap: Any, most: int) -> None:
    job = await house.add(overlap=overlap)
    async with anyio.create_task_group() as tasks:
        runner = house.runner()
        await tasks.start(runner.run)
        for hour in (1, 2, 3):
            house.now = NOON + hour * 3600
            await runner.look()
        for at in range(most):
            await house.end("ok", at)
        await house.settle()
        tasks.cancel_scope.cancel()
    rows = await house.rows(job)
    assert rows == [(1, "ran", ""), (2, "ran", ""), (3, "skipped", STILL_RUNNING)][:most] + [
        (hour, "skipped", STILL_RUNNING) for hour in range(most + 1, 4)
    ]


async def test_a_turn_that_takes_too_long_is_stopped_and_alerts(house: House) -> None:
    job = await house.add(max_time=0.01)
    house.now = NOON + 3600
    async with anyio.create_task_group() as tasks:
        await tasks.start(house.runner().run)
        await until(lambda: bool(house.came))
        claim = records.Claim(turn_id="t", by="n", on=house.seqs[0], attempt=1)
        await house.engine.append(NewRecord(subjects.session_subject_of("turn", KEY), records.encode(claim)))
        await house.settle()
        tasks.cancel_scope.cancel()
    assert house.stopped == [KEY]
    assert [row[1] for row in await house.rows(job)] == ["failed"]
    assert (await house.rows(job))[0][2].startswith("took longer than")
    assert house.alerts == ["The job tea of net:7 was stopped: it took longer than 10ms."]


async def test_a_maker_who_may_not_speak_any_more_has_no_moment(house: House) -> None:
    job, house.role = await house.add(), None
    for hour in (1, 2):
        house.now = NOON + hour * 3600
        await house.run_until_all_ended()
    assert (await house.rows(job), house.came) == ([(1, "skipped", STRANGER)], [])
    assert (await house.jobs.find("tea")).job.paused == STRANGER


@pytest.mark.parametrize(("person", "is_run"), [("net:7", False), ("hook:one", True), ("", True)])
async def test_a_job_of_a_hook_ends_with_the_rights_of_who_answers_for_it(
    house: House, person: str, is_run: bool
) -> None:
    await house.add(is_internal=True, person=person, user_id="hook:one", role="user")
    house.role, house.now = None, NOON + 3600
    await house.run_until_all_ended()
    assert (len(house.came), (await house.jobs.find("tea")).job.paused) == (is_run, "" if is_run else STRANGER)


@pytest.mark.parametrize(
    ("made_as", "now", "kind", "role"),
    [("owner", "owner", "text", ""), ("user", "owner", "internal", "user"), ("owner", "user", "text", "")],
)
async def test_it_runs_with_the_least_rights(house: House, made_as: Any, now: Any, kind: str, role: str) -> None:
    await house.add(role=made_as)
    house.role, house.now = now, NOON + 3600
    await house.run_until_all_ended()
    (said,) = house.came
    assert (said.kind, said.role) == (kind, role)
    assert (said.payer, said.author) == ("net:7", "job")


async def test_a_job_that_fails_five_times_in_a_row_is_paused_and_goes_on_by_hand(house: House) -> None:
    job = await house.add()
    for hour in range(1, 8):
        house.now = NOON + hour * 3600
        await house.run_until_all_ended("failed")
    assert [row[1] for row in await house.rows(job)] == ["failed"] * 5
    assert (await house.jobs.find("net:7/tea")).job.paused == TOO_OFTEN
    (alert,) = house.alerts
    assert alert.startswith("The job tea of net:7 failed 5 times in a row and is paused: ")
    assert alert.endswith("`hermes-gateway jobs resume net:7/tea`")
    await house.jobs.pause(job, "")
    house.now = NOON + 8 * 3600
    await house.run_until_all_ended()
    assert (await house.rows(job))[5:] == [(8, "ran", "")]  # those of the pause are not made up for


async def test_a_maker_s_jobs_run_sixty_times_an_hour_at_most_over_a_restart_too(house: House) -> None:
    for number in range(50):
        await house.add(f"j{number}", when="every 1m")
    with pytest.raises(AgentError, match="has 50 jobs already"):
        await house.add("one too many")
    for minute in (1, 2):
        house.now = NOON + minute * 60
        await house.run_until_all_ended()
    assert len(house.came) == 60
    assert [facts["reason"] for name, facts in house.told if name == "job:skipped"] == [SPENT.format(60)] * 40


async def test_a_moment_that_another_process_was_about_to_take_counts_once(house: House) -> None:
    """The append of the moment conflicts, and it is taken again: the maker has had one run, not two."""
    accept, conflicts = house.accept, [Conflict("another was faster")]

    async def accept_later(message: Message, key: str, *extra: NewRecord) -> int:
        if conflicts:
            raise conflicts.pop()
        return await accept(message, key, *extra)

    house.jobs = JobJournal(house.engine, lambda: house.now, lambda: JobSettings(runs_an_hour=1))
    job = await house.add()
    house.now = NOON + 3600
    async with anyio.create_task_group() as tasks:
        ports = house.ports()._replace(accept=accept_later)
        await tasks.start(JobRunner(house.engine, house.jobs, ports, house.clocks).run)
        await until(partial(house.has_come, 1))
        await house.end()
        await house.settle()
        tasks.cancel_scope.cancel()
    assert await house.rows(job) == [(1, "ran", "")]


async def test_two_gateways_on_one_journal_run_a_moment_once(house: House) -> None:
    job, runners = await house.add(), [house.runner(), house.runner()]
    async with anyio.create_task_group() as tasks:
        for runner in runners:
            await tasks.start(runner.run)
        for hour in (1, 2):
            house.now = NOON + hour * 3600
            async with anyio.create_task_group() as looks:
                for runner in runners:
                    looks.start_soon(runner.look)
            await house.end()
            await house.settle()
        tasks.cancel_scope.cancel()
    assert await house.rows(job) == [(1, "ran", ""), (2, "ran", "")]
    assert (len(house.came), [name for name, _ in house.told]) == (2, ["job:due", "job:done"] * 2)


async def test_a_turn_that_begins_in_the_append_of_its_moment_ends_after_a_crash(house: House) -> None:
    """The lanes write the claim of the turn between the message and the record of the moment."""
    job, accept = await house.add(), house.accept

    async def claim_at_once(message: Message, key: str, *extra: NewRecord) -> int:
        claim = records.Claim(turn_id="t", by="n", on=0, attempt=1)
        put = NewRecord(subjects.session_subject_of("turn", key), records.encode(claim))
        return await accept(message, key, put, *extra)

    house.now = NOON + 3600
    async with anyio.create_task_group() as tasks:
        runner = JobRunner(house.engine, house.jobs, house.ports()._replace(accept=claim_at_once), house.clocks)
        await tasks.start(runner.run)
        await until(lambda: bool(house.came))
        tasks.cancel_scope.cancel()
    await house.end()
    await house.run_until_all_ended()
    assert await house.rows(job) == [(1, "ran", "")]


async def test_a_name_is_the_maker_s_own(house: House) -> None:
    await house.add()
    with pytest.raises(AgentError, match="there is a job 'tea' already"):
        await house.add(id="other")
    await house.add(id="other", maker="net:8")
    with pytest.raises(AgentError, match="several jobs 'tea'; write one of net:7/tea, net:8/tea"):
        await house.jobs.find("tea")
    await house.jobs.remove((await house.jobs.find("net:8/tea")).job)
    assert (await house.jobs.find("tea")).job.maker == "net:7"


async def test_a_removed_job_whose_moment_runs_still_has_its_end(house: House) -> None:
    job = await house.add()
    house.now = NOON + 3600
    async with anyio.create_task_group() as tasks:
        await tasks.start(house.runner().run)
        await until(lambda: bool(house.came))
        await house.jobs.remove(job)
        await house.end()
        await until(lambda: any(name == "job:done" for name, _ in house.told))
        tasks.cancel_scope.cancel()
    _, moment = await house.jobs.read_moment(job, NOON + 3600)
    assert moment
    assert moment.state == "ran"


async def test_jobs_and_their_history_are_of_their_maker(house: House) -> None:
    await house.add()
    house.now = NOON + 3600
    await house.run_until_all_ended()
    kept = [records.decode(one.data) for one in await house.engine.read("gw.>", limit=100)]
    kept = [one for one in kept if isinstance(one, records.StoredValue)]
    assert len(kept) == 2
    assert all(is_of(one, Person("net", "7")) and not is_of(one, Person("net", "8")) for one in kept)


def test_about_a_thousand_moments_are_kept() -> None:
    def lifetime(when: str) -> float:
        job = Job("a", "a", "net:7", when, "x", ROOM, ROOM, KEY, "7", NOON, zone="UTC")
        return find_history_limit(job, NOON) / 86_400

    assert [lifetime(when) for when in ("every 1m", "every 1h", "0 9 * * *", "0 0 29 2 *")] == [
        pytest.approx(1000 / 1440),
        pytest.approx(1000 / 24),
        90,
        90,
    ]


def test_moments_are_counted_in_one_pass() -> None:
    calls = list[str]()
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        found = count_moments(read_timetable("0-59 0-23 * * *", "UTC"), NOON, NOON + 86_400)
    finally:
        sys.setprofile(None)
    assert found
    assert (found.count, found.last, found.previous) == (1440, NOON + 86_400, NOON + 86_340)
    assert len(calls) < 100_000


async def test_reminders_of_an_earlier_version_come_as_jobs_of_one_moment(house: House) -> None:
    kept = {
        "id": "a1b2c3",
        "at": NOON + 100,
        "text": "the tea",
        "session_key": KEY,
        "address": msgspec.to_builtins(ROOM),
        "user_id": "7",
        "role": "",
        "person": "",
        "ahead": 0.0,
    }
    await house.engine.append(make_value_put(subjects.REMINDERS, "a1b2c3", kept))
    for _ in range(2):
        await house.run_until_all_ended()
    assert [one.name for one in await house.jobs.list_of(KEY)] == ["a1b2c3"]
    house.now += 101
    await house.run_until_all_ended()
    assert [one.text for one in house.came] == [DUE_TEXT.format("the tea")]
    assert await house.jobs.list_of(KEY) == []


def calling(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "args": args}]}


@contextmanager
def running(tasks: anyio.abc.TaskGroup) -> Iterator[None]:
    try:
        yield
    finally:
        tasks.cancel_scope.cancel()


async def test_a_reminder_comes_as_a_message_and_silence_is_kept() -> None:
    turns = [
        {"user": "wake me", "answers": [calling("schedule", text="the tea", when="0.2s"), {"text": "I will"}]},
        {"user": "due. Tell the person, or do what it says.] the tea", "text": "your tea!"},
        {"user": "look", "answers": [calling("schedule", text="nothing", when="0.2s"), {"text": "I do"}]},
        {"user": "due. Tell the person, or do what it says.] nothing", "text": " [SILENT]\n"},
    ]
    async with chat(*turns, tools=make_chat_tools()) as room, anyio.create_task_group() as tasks:
        lanes, told = room.dispatcher.lanes, list[str]()
        ports = JobPorts(
            lanes.accept, lanes.interrupt, room.house.access.find_role, lambda name, **_: told.append(name)
        )
        with running(tasks):
            await tasks.start(JobRunner(room.house.engine, room.dispatcher.jobs, ports, Clocks()).run)
            await room.write("wake me")
            assert await room.hear(1) == "I will"
            assert await room.hear(2) == "your tea!"
            assert room.net.sent[1].address == ROOM
            await room.write("look")
            assert await room.hear(3) == "I do"
            await until(lambda: told == ["job:due", "job:done"] * 2)
            assert len(room.net.sent) == 3


def test_a_job_is_described_in_one_short_line() -> None:
    last = Moment(NOON, "failed", "oh\n" * 500)
    job = Job("tea", "tea", "net:7", "@daily", "make\ntea " * 50, ROOM, ROOM, KEY, "7", NOON, last=last)
    line = describe_job(job)
    assert len(line) <= LONGEST_LINE
    assert "\n" not in line
    assert "[last: " in line


async def test_the_agent_lists_pauses_and_removes_what_it_has_scheduled() -> None:
    (schedule, scheduled, unschedule) = (one for one in make_chat_tools() if "schedule" in one.name)
    times = {
        "20m": False,
        "soon": False,
        "2030-12-31 09:00": False,
        "every 2h": True,
        "Every 2h": True,
        "0 9 * * *": True,
    }
    times |= {"@daily": True, " @daily": True}
    assert callable(schedule.asks)
    assert {when: schedule.asks({"when": when}, {}) for when in times} == times
    assert schedule.subject
    assert {when: schedule.subject({"when": when}) is None for when in times} == times
    turns = [
        {"user": "wake me", "answers": [calling("schedule", text="the tea", when="2h"), {"text": "I will"}]},
        {"user": "which", "answers": [calling("scheduled"), {"text": "these"}]},
    ]
    async with chat(*turns, tools=(schedule, scheduled, unschedule)) as room:
        await room.write("wake me")
        await room.hear(1)
        (job,) = await room.dispatcher.jobs.list_of(KEY)
        assert (job.maker, job.role, job.is_internal) == ("net:7", "user", False)
        assert job.at == pytest.approx(time.time() + 7200, abs=60)
        await room.write("which")
        await room.hear(2)
        results = [entry.content for entry in (await room.house.sessions.open(KEY)).entries if entry.role == "tool"]
        assert results[1].startswith(f"{job.name}: ")
        assert results[1].endswith(": the tea")
