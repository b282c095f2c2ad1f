"""Pending events reach a durable hook at least once, whatever happens meanwhile, or end as dead letters."""

import math
import os
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.interface import ConsumerSpec, Engine, NewRecord
from gateway.engine.journal_clock import Clock
from gateway.engine.sqlite.engine import SqliteEngine, open_sqlite
from gateway.engine.subjects import matches
from gateway.errors import HookError
from gateway.hooks import HookRegistry
from gateway.hooks.durable.dead_letters import build_filters, can_be_durable, subject_token_of
from gateway.hooks.durable.event_expiry import EventExpiry
from gateway.hooks.durable.hook_expiry import OWNER, HookExpiry
from gateway.hooks.folders.durable import DRAIN_WAIT
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.patterns import Patterns
from gateway.messages.steps import VERSION
from gateway.records import records, subjects
from gateway.records.subjects import event_subject_of
from tests.engine.memory_engine import MemoryEngine
from tests.hooks.folders.workshop import Home, hook_of
from tests.spine import SetClock, until
from tests.waits import Stopwatch

DURABLE = "events: ['my:*']\ndelivery: durable\n"


@asynccontextmanager
async def served(home: Home, engine: Engine) -> AsyncIterator[tuple[HookRegistry, FolderHooks]]:
    registry = HookRegistry()
    async with home.serving(registry, engine) as service:
        yield registry, service


def numbers(home: Home, name: str = "keeps") -> list[int]:
    return [n for _, _, n in home.seen(name)]


@pytest.mark.process
async def test_events_come_by_the_journal_each_once_in_order_with_a_key(home: Home) -> None:
    source = home.noting("keeps", "1").replace('context.get("n")', 'context["delivery"]["key"]')
    home.plant("keeps", DURABLE, source)
    engine = MemoryEngine()
    async with served(home, engine) as (registry, service):
        for n in range(5):
            registry.emit("my:event", n=n)
        await until(lambda: hook_of(service, "keeps").calls.record.calls == 5)
        records = await engine.read("gw.ev.>")
        assert numbers(home) == [record.seq for record in records]
        status = await service.info("keeps")
        assert (status.delivery, status.calls, status.failures, status.dead) == ("durable", 5, 0, 0)


@pytest.mark.process
async def test_several_durable_hooks_share_one_record(home: Home) -> None:
    home.plant("one", DURABLE, home.noting("one", "1"))
    home.plant("two", "events: ['my:event']\nwhen: {n: 2}\ndelivery: durable\n", home.noting("two", "1"))
    engine = MemoryEngine()
    async with served(home, engine) as (registry, _):
        for n in (1, 2):
            registry.emit("my:event", n=n)
        await until(lambda: numbers(home, "one") == [1, 2] and numbers(home, "two") == [2])
        assert len(await engine.read("gw.ev.>")) == 2


@pytest.mark.process
async def test_pieces_of_an_answer_are_recorded_only_for_a_hook_that_names_them(home: Home) -> None:
    home.plant("all", "events: ['*']\ndelivery: durable\n", home.noting("all", "1"))
    home.plant("some", "events: ['llm:*']\ndelivery: durable\n", home.noting("some", "1"))
    engine = MemoryEngine()
    async with served(home, engine) as (registry, _):
        for n, name in enumerate(("llm:chunk", "llm:chunk", "llm:after")):
            registry.emit(name, n=n)
        await until(lambda: 2 in numbers(home, "all") and 2 in numbers(home, "some"))
        assert {record.subject for record in await engine.read("gw.ev.llm.>")} == {event_subject_of("llm:after")}
        home.plant("pieces", "events: ['llm:chunk']\ndelivery: durable\n", home.noting("pieces", "1"))

        def is_told() -> bool:
            registry.emit("llm:chunk", n=3)
            return 3 in numbers(home, "pieces")

        await until(is_told)
        registry.emit("llm:after", n=4)
        await until(lambda: 4 in numbers(home, "all") and numbers(home, "some") == [2, 4])
        assert not {0, 1, 3} & {*numbers(home, "all")}
        assert {*numbers(home, "pieces")} == {3}


@pytest.mark.process
async def test_a_repeated_event_is_the_same_record(home: Home) -> None:
    home.plant("keeps", DURABLE, home.noting("keeps", "1"))
    async with served(home, MemoryEngine()) as (registry, _):
        registry.emit("my:event", n=1, id="same")
        registry.emit("my:event", n=1, id="same", resumed=True)
        registry.emit("my:event", n=2)
        await until(lambda: numbers(home) == [1, 2])


@pytest.mark.process
async def test_what_is_fired_while_all_around_is_cancelled_is_owed(home: Home) -> None:
    """As a gateway does that stops: what it ends then, hooks are told of too."""
    home.plant("keeps", DURABLE, home.noting("keeps", "1"))
    engine = MemoryEngine()
    with Stopwatch() as watch:
        async with anyio.create_task_group() as tasks, served(home, engine) as (registry, _):
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.wait_all_tasks_blocked()
                registry.emit("my:event", n=1)
    assert len(await engine.read("gw.ev.>")) == 1
    assert watch.seconds < DRAIN_WAIT


@pytest.mark.process
async def test_what_fails_is_tried_again_and_then_a_dead_letter(home: Home) -> None:
    source = home.noting("keeps", "1") + "    if context['n'] == 2: raise ValueError(context['delivery']['attempt'])\n"
    home.plant("keeps", DURABLE, source)
    async with served(home, MemoryEngine()) as (registry, service):
        for n in (1, 2, 3):
            registry.emit("my:event", n=n)
        await until(lambda: sorted(numbers(home)) == [1, 2, 2, 2, 3])
        await until(lambda: service.dead_letters.list("keeps"))
        (letter,) = await service.dead_letters.list()
        assert (letter.hook, letter.event, letter.attempts, letter.fields["n"]) == ("keeps", "my:event", 3, 2)
        assert "ValueError: 3" in letter.reason
        assert (await service.info("keeps")).dead == 1
        assert (await service.status())[0].dead == 1
        assert (await service.info("keeps")).owed == 0


@pytest.mark.process
async def test_an_event_of_a_later_version_is_left_to_it_and_is_no_dead_letter(home: Home) -> None:
    home.plant("keeps", DURABLE, home.noting("keeps", "1"))
    engine = MemoryEngine()
    async with served(home, engine) as (registry, service):
        newer = records.EmittedEvent(v=VERSION + 1, name="my:event", fields={"n": 0})
        await engine.append(records.make_event_put(newer))
        registry.emit("my:event", n=1)
        await until(lambda: numbers(home) == [1])
        await until(lambda: "left to a later version" in service.trouble)
        assert (await service.info("keeps")).owed >= 1
        assert await service.dead_letters.list() == []


@pytest.mark.process
async def test_what_is_owed_waits_until_the_hooks_were_looked_at(home: Home) -> None:
    """So after an upgrade there is a way back without loss, as long as the check has not passed."""
    home.plant("keeps", DURABLE, home.noting("keeps", "1"))
    engine, looked = MemoryEngine(), list[list[int]]()
    async with home.serving(HookRegistry(), engine):
        pass
    owed = records.EmittedEvent(name="my:event", fields={"n": 1, "id": "a"}, depth=0)
    await engine.append(records.make_event_put(owed, "ev:a"))

    async def look() -> None:
        await anyio.sleep(0.5)
        looked.append(numbers(home))

    async with home.serving(HookRegistry(), engine, check=look):
        assert looked == [[]]
        await until(lambda: numbers(home) == [1])


@pytest.mark.process
async def test_a_dead_letter_is_delivered_again_under_its_first_key(home: Home) -> None:
    source = home.noting("keeps", "1").replace('context.get("n")', 'context["delivery"]["key"]')
    folder = home.plant("keeps", DURABLE, source + "    raise ValueError\n")
    async with served(home, MemoryEngine()) as (registry, service):
        registry.emit("my:event", n=1)
        await until(service.dead_letters.list)
        found = await service.dead_letters.list()
        (folder / "handler.py").write_text(source)
        before = hook_of(service, "keeps").process.loaded_at
        await until(lambda: hook_of(service, "keeps").process.loaded_at != before)
        told = len(home.seen("keeps"))
        await service.dead_letters.retry(found[0].number)
        await until(lambda: len(home.seen("keeps")) == told + 1)
        assert len(set(numbers(home))) == 1
        assert await service.dead_letters.list() == []
        for verb in (service.dead_letters.retry, service.dead_letters.prune):
            with pytest.raises(HookError, match=r"dead letter \d+ not found"):
                await verb(found[0].number)


@pytest.mark.process
async def test_dead_letters_are_thrown_away_one_by_one_or_all(home: Home) -> None:
    home.plant("keeps", DURABLE, "def handle(e, c): raise ValueError\n")
    home.retries = ()
    async with served(home, MemoryEngine()) as (registry, service):
        for n in range(3):
            registry.emit("my:event", n=n)

        async def are_there() -> bool:
            return len(await service.dead_letters.list()) == 3

        await until(are_there)
        found = await service.dead_letters.list()
        await service.dead_letters.prune(found[1].number)
        assert [letter.number for letter in await service.dead_letters.list()] == [found[0].number, found[2].number]
        for letter in await service.dead_letters.list():
            await service.dead_letters.prune(letter.number)
        assert await service.dead_letters.list() == []


@pytest.mark.process
async def test_a_worker_that_is_killed_at_its_work_is_told_again(home: Home) -> None:
    source = home.noting("keeps", "1") + "    if context['delivery']['attempt'] == 1: __import__('os')._exit(1)\n"
    home.plant("keeps", DURABLE, source)
    async with served(home, MemoryEngine()) as (registry, _):
        registry.emit("my:event", n=1)
        await until(lambda: numbers(home) == [1, 1])


@pytest.mark.process
async def test_the_backlog_waits_while_the_hook_is_broken_or_its_folder_away(home: Home) -> None:
    source = home.noting("keeps", "1")
    folder = home.plant("keeps", DURABLE, source)
    engine = MemoryEngine()
    async with served(home, engine) as (registry, service):
        registry.emit("my:event", n=0)
        await until(lambda: numbers(home) == [0])
        (folder / "handler.py").write_text("import os\ndef handle(e, c): os._exit(1)\n")
        loaded = hook_of(service, "keeps").process.loaded_at
        await until(lambda: hook_of(service, "keeps").process.loaded_at != loaded)
        (folder / "handler.py").write_text("broken(\n")
        await until(lambda: "does not count" in hook_of(service, "keeps").process.reason)
        registry.emit("my:event", n=1)
        await until(lambda: hook_of(service, "keeps").process.state == "broken")
        registry.emit("my:event", n=2)

        async def are_owed() -> bool:
            return await engine.depth(subject_token_of("keeps")) == 2

        await until(are_owed)
        folder.rename(home.root / "away")
        await until(lambda: not registry.wants("my:event"))
        assert await engine.depth(subject_token_of("keeps")) == 2
        (home.root / "away" / "handler.py").write_text(source)
        (home.root / "away").rename(folder)
        await until(lambda: sorted(numbers(home)) == [0, 1, 2])


@pytest.mark.process
async def test_a_hook_that_is_broken_from_the_start_on_is_owed_what_happens(home: Home) -> None:
    folder = home.plant("keeps", DURABLE, "broken(\n")
    async with served(home, MemoryEngine()) as (registry, service):
        await until(lambda: hook_of(service, "keeps").process.state == "broken")
        registry.emit("my:event", n=1)
        (folder / "handler.py").write_text(home.noting("keeps", "1"))
        await until(lambda: numbers(home) == [1])


@pytest.mark.process
async def test_what_was_owed_before_a_restart_is_delivered_after_it(home: Home) -> None:
    home.plant("keeps", DURABLE, "def handle(e, c): raise ValueError\n")
    home.retries = (60.0,)
    async with await open_sqlite(home.root / "journal.db") as engine, served(home, engine) as (registry, service):
        registry.emit("my:event", n=1)
        await until(lambda: hook_of(service, "keeps").calls.record.failures == 1)
    (home.hooks / "keeps" / "handler.py").write_text(home.noting("keeps", "2"))
    async with await open_sqlite(home.root / "journal.db") as engine, served(home, engine):
        await until(lambda: home.seen("keeps") == [["2", "my:event", 1]])


def journal_of(home: Home) -> tuple[set[str], set[str]]:
    """Return the content of the file itself: the consumers, and the subjects of dead letters and of retries."""
    with closing(sqlite3.connect(home.root / "journal.db")) as journal:
        consumers = {name for (name,) in journal.execute("SELECT name FROM consumer")}
        names = {subject for (subject,) in journal.execute("SELECT subject FROM log")}
    return consumers, {subject for subject in names if subject.startswith(("gw.dead.", "gw.redo."))}


@asynccontextmanager
async def started(home: Home) -> AsyncIterator[tuple[HookRegistry, FolderHooks]]:
    async with await open_sqlite(home.root / "journal.db") as engine, served(home, engine) as (registry, service):
        await service.settled()
        yield registry, service


async def leave_a_dead_letter(home: Home) -> None:
    home.retries = ()
    async with started(home) as (registry, service):
        registry.emit("my:event", n=1)
        await until(service.dead_letters.list)


@pytest.mark.process
async def test_a_hook_that_is_gone_for_seven_days_leaves_nothing_in_the_journal(home: Home) -> None:
    folder = home.plant("keeps", DURABLE, "def handle(e, c): raise ValueError\n")
    home.plant("stays", DURABLE, home.noting("stays", "1"))
    await leave_a_dead_letter(home)
    dead = {subject for subject in journal_of(home)[1] if subject.startswith("gw.dead.hook-keeps.")}
    assert len(dead) == 1
    stays = subjects.hook_store_subject_of("stays", "a")
    async with await open_sqlite(home.root / "journal.db") as engine:
        for hook in ("keeps", "stays"):
            value = records.encode(records.StoredValue(hook=hook, key="a", value=1))
            await engine.append(NewRecord(subjects.hook_store_subject_of(hook, "a"), value))
    away = home.root / "away"
    folder.rename(away)
    for _ in range(2):  # gone, but not for long
        async with started(home):
            pass
        assert journal_of(home) == ({"hook-keeps", "hook-stays"}, dead)
    await put_seen(home, 8)
    away.rename(folder)
    async with started(home):  # as another gateway that has it
        pass
    folder.rename(away)
    async with started(home):
        pass
    assert journal_of(home) == ({"hook-keeps", "hook-stays"}, dead)
    await put_seen(home, 8)
    async with started(home):
        pass
    assert journal_of(home) == ({"hook-stays"}, set())
    async with await open_sqlite(home.root / "journal.db") as engine:
        kept = await engine.read(subjects.HOOK_STORE_SUBJECTS, 0, 99)
        found = {(one.subject, records.decode(one.data).key) for one in kept}  # type: ignore[attr-defined]
        assert found == {(stays, "a"), (subjects.hook_store_subject_of(OWNER, "hook-stays"), "hook-stays")}


async def put_seen(home: Home, days: float, engine: Engine | None = None) -> None:
    """The hook `keeps` was last seen so many days ago."""
    if engine is None:
        async with await open_sqlite(home.root / "journal.db") as opened:
            return await put_seen(home, days, opened)
    value = engine.clock.latest() - days * records.DAY
    kept = records.StoredValue(hook=OWNER, key="hook-keeps", value=value)
    await engine.append(NewRecord(subjects.hook_store_subject_of(OWNER, kept.key), records.encode(kept)))
    return None


async def is_fresh(engine: Engine) -> bool:
    """Return True if it was seen just now."""
    where = subjects.hook_store_subject_of(OWNER, "hook-keeps")
    _, kept = await records.read_last(engine, where, records.StoredValue)
    return kept is not None and engine.clock.latest() - kept.value < 60


@pytest.mark.process
async def test_a_hook_that_comes_back_is_gone_from_then_on_anew(home: Home) -> None:
    folder, away = home.plant("keeps", DURABLE, home.noting("keeps", "1")), home.root / "away"
    async with started(home):
        pass
    folder.rename(away)
    async with await open_sqlite(home.root / "journal.db") as engine, served(home, engine):
        for move in (lambda: away.rename(folder), lambda: folder.rename(away)):
            await put_seen(home, 6, engine)
            move()
            await until(lambda: is_fresh(engine), "it is written at once")


async def test_what_any_gateway_has_is_forgotten_by_none() -> None:
    engine = MemoryEngine()
    await engine.consumer(ConsumerSpec("hook-keeps", ("my.x",)))
    has_it, lacks_it = HookExpiry(engine, 0.05), HookExpiry(engine)

    async def list_gone(of: HookExpiry, *here: str) -> list[str]:
        return [token async for token in of.follow(lambda: here)]

    home = Home(Path())
    assert await list_gone(has_it, "hook-keeps") == []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(has_it.run)
        await put_seen(home, 8, engine)
        await until(lambda: is_fresh(engine), "it says so again")
        assert await list_gone(lacks_it) == []
        tasks.cancel_scope.cancel()
    await put_seen(home, 8, engine)
    assert await list_gone(lacks_it) == ["hook-keeps"]


async def put_at_age(engine: SqliteEngine, days: float, name: str, journal: Path) -> int:
    """An event that was written so many days ago."""
    event = records.EmittedEvent(name=name, fields={"id": name, "n": 1})
    put = NewRecord(subjects.owed_event_subject_of(name, "someone"), records.encode(event))
    (seq,) = await engine.append(put)
    with closing(sqlite3.connect(journal)) as file, file:
        file.execute("UPDATE log SET ts = ts - ? WHERE seq = ?", (days * records.DAY, seq))
    return seq


@pytest.mark.process
async def test_what_a_hook_does_not_take_for_seven_days_is_a_dead_letter_and_never_nothing(home: Home) -> None:
    journal = home.root / "journal.db"
    folder = home.plant("keeps", DURABLE, home.noting("keeps", "1"))
    home.plant("takes", DURABLE, home.noting("takes", "1"))
    async with started(home):  # both have their place in the journal
        pass
    (folder / "handler.py").write_text("broken(\n")
    async with await open_sqlite(journal) as engine:
        old, young = await put_at_age(engine, 8, "my:old", journal), await put_at_age(engine, 6, "my:young", journal)
    async with await open_sqlite(journal) as engine, served(home, engine) as (_, service):
        await until(lambda: numbers(home, "takes") == [1, 1])
        assert [record.seq for record in await engine.list_owed("hook-keeps", math.inf)] == [old, young]
        expiry = EventExpiry(engine, lambda token: token.removeprefix("hook-"))
        for _ in range(2):  # the second time there is nothing left to do
            await expiry.expire()
            (letter,) = await service.dead_letters.list()
            assert (letter.hook, letter.event, letter.fields["n"]) == ("keeps", "my:old", 1)
            assert "seven days" in letter.reason
            kept = [record.seq for record in await engine.read(subjects.OWED_EVENT_SUBJECTS)]
            assert kept == [young], "what nobody is owed any more goes, and what is young stays"
        (folder / "handler.py").write_text(home.noting("keeps", "2"))
        await until(lambda: home.seen("keeps") == [["2", "my:young", 1]])
        await service.dead_letters.retry(letter.number)
        await until(lambda: home.seen("keeps")[1:] == [["2", "my:old", 1]])


async def test_what_is_old_goes_and_the_rest_is_told_in_its_order() -> None:
    clock = SetClock()
    async with MemoryEngine(clock=Clock(wall=clock, machine=clock)) as engine:
        for number in range(20):
            if number == 10:
                clock.now += records.EVENT_TTL
            clock.now += 1
            event = records.EmittedEvent(name="my:event", fields={"id": str(number)})
            subject = subjects.owed_event_subject_of(event.name, f"someone {number % 10}")
            await engine.append(NewRecord(subject, records.encode(event)))
        for left in (range(20), range(10, 20)):
            found = [int(event.fields["id"]) async for _, event in records.read_events(engine)]
            assert found == [*left]
            await EventExpiry(engine, lambda token: token).expire()


async def test_a_clock_that_is_set_ahead_makes_no_dead_letter() -> None:
    ahead = [0.0]
    engine = MemoryEngine(Clock(wall=lambda: time.time() + ahead[0]))
    consumer = await engine.consumer(ConsumerSpec("hook-keeps", ("gw.ev.>",)))
    event = records.EmittedEvent(name="my:event", fields={"id": "1"})
    (seq,) = await engine.append(records.make_event_put(event))
    ahead[0] = 400 * records.DAY
    await EventExpiry(engine, lambda token: token).expire()
    assert await engine.read(subjects.DEAD_SUBJECTS) == []
    (delivery,) = await consumer.fetch(1, 1)
    assert delivery.record.seq == seq


KILLED = """
import sys
from pathlib import Path
import anyio
from gateway.engine.sqlite.engine import open_sqlite
from gateway.hooks import HookRegistry
from tests.hooks.folders.workshop import Home

async def main():
    home, registry = Home(Path(sys.argv[1])), HookRegistry()
    async with await open_sqlite(home.root / "journal.db") as engine, home.serving(registry, engine):
        first = int(sys.argv[2])
        for n in range(first, first + 40):
            registry.emit("my:event", n=n)
            await registry.settled()
            print(n, flush=True)
            await anyio.sleep(0.002)
        await anyio.sleep(60)

anyio.run(main)
"""


@pytest.mark.process
async def test_kill_minus_nine_at_any_instant_loses_nothing_that_was_told(home: Home) -> None:
    """Each run is killed in the midst of its work; what it had told the journal reaches the hook, at least once."""
    home.plant("keeps", DURABLE, home.noting("keeps", "1"))
    told: list[int] = []
    for at, lines in enumerate((3, 17, 30)):
        program = [sys.executable, "-c", KILLED, str(home.root), str(at * 100)]
        process = await anyio.open_process(program, cwd=Path(__file__).parents[3], start_new_session=True, stderr=None)
        assert process.stdout
        text = ""
        while text.count("\n") < lines:
            text += (await process.stdout.receive()).decode()
        os.kill(process.pid, signal.SIGKILL)
        await process.aclose()
        told += [int(line) for line in text.split()]
    async with await open_sqlite(home.root / "journal.db") as engine, served(home, engine):
        await until(lambda: set(numbers(home)) >= set(told))


SEGMENTS = st.sampled_from(["a", "b", "c"])
PATTERNS = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=3).map(":".join)
NAMES = st.lists(SEGMENTS, min_size=1, max_size=4).map(":".join)


@given(st.lists(PATTERNS, min_size=1, max_size=4), NAMES)
def test_the_filters_of_a_consumer_take_in_what_the_registry_would_tell(patterns: list[str], name: str) -> None:
    wanted: Patterns[str] = Patterns()
    for pattern in patterns:
        wanted.add(pattern, pattern)
    found = [one for one in build_filters("x", patterns) if matches(one, event_subject_of(name))]
    assert bool(found) == any(wanted.match(name))


@pytest.mark.row("T19")
@pytest.mark.parametrize("name", ["my hook", "a.b", "a*", ">", "é", "..", "x" * 100, "a:b", "hook-a"])
def test_every_folder_has_a_name_in_the_journal_that_is_its_own(name: str) -> None:
    made = subject_token_of(name)
    assert made.isascii()
    assert made.replace("-", "").replace("_", "").isalnum()
    assert len(made) < 80
    assert len({subject_token_of(one) for one in (name, name + " ", name.upper(), "hook", "activity-log")}) >= 4
    assert subject_token_of("activity-log") == "hook-activity-log"


def test_whole_segments_can_be_delivered_durably() -> None:
    for pattern, durable in (
        ("*", True),
        ("a:*", True),
        ("a:*:b", True),
        ("a:b*", False),
        ("a:", False),
        ("a.b:c", False),
    ):
        assert can_be_durable(pattern) is durable, pattern
