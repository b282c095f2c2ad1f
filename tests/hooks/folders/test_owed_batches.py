"""A durable hook receives many events in one message, and each is an event of its own all the same."""

from collections import Counter

import pytest

from gateway.daemon.hooks import list_hook_problems
from gateway.engine.sqlite.engine import open_sqlite
from gateway.hooks import HookRegistry
from gateway.records import records
from gateway.worker.kernel import find_kernel_support
from tests.engine.memory_engine import MemoryEngine
from tests.hooks.folders.test_durable import DURABLE, numbers, put_at_age, served, started
from tests.hooks.folders.workshop import Home, hook_of
from tests.spine import until

pytestmark = pytest.mark.process
MANY = 60  # in a few messages


def fire(registry: HookRegistry, count: int, **fields: object) -> None:
    for n in range(count):
        registry.emit("my:event", n=n, **fields)


async def test_many_are_told_in_order_with_few_commits(home: Home) -> None:
    home.plant("keeps", DURABLE, home.noting("keeps", "1"))
    async with await open_sqlite(home.root / "journal.db") as engine, served(home, engine) as (registry, service):
        fire(registry, 1)
        await until(lambda: numbers(home) == [0])
        before = (await engine.health()).commits
        fire(registry, 1000)

        async def are_told() -> bool:
            return (await service.info("keeps")).owed == 0 and len(numbers(home)) == 1001

        await until(are_told)
        assert (await engine.health()).commits - before < 100
        assert numbers(home) == [0, *range(1000)]
        record = hook_of(service, "keeps").calls.record
        assert (record.calls, record.failures) == (1001, 0)
        assert [event.fields["n"] for event in record.given] == [995, 996, 997, 998, 999]


async def test_one_that_fails_is_tried_again_by_itself(home: Home) -> None:
    fails = "    if context['n'] in (7, 27): raise ValueError(context['delivery']['attempt'])\n"
    home.plant("keeps", DURABLE, home.noting("keeps", "1") + fails)
    async with served(home, MemoryEngine()) as (registry, service):
        fire(registry, MANY)

        async def are_dead() -> bool:
            return len(await service.dead_letters.list("keeps")) == 2

        await until(are_dead)
        letters = await service.dead_letters.list("keeps")
        assert {letter.fields["n"]: letter.attempts for letter in letters} == {7: 3, 27: 3}
        assert all("ValueError: 3" in letter.reason for letter in letters)
        assert Counter(numbers(home)) == Counter(range(MANY)) + Counter([7, 27] * 2)


async def test_what_kills_the_process_buries_no_neighbour(home: Home) -> None:
    home.retries = (0.02, 0.02, 0.02, 0.02)
    kills = "    if context['n'] == 25: os._exit(1)\n"
    home.plant("keeps", DURABLE, home.noting("keeps", "1") + kills)
    async with served(home, MemoryEngine()) as (registry, service):
        fire(registry, MANY)
        told = lambda: set(numbers(home)) == set(range(MANY))  # noqa: E731 - read in the line below

        async def are_dead() -> bool:
            hook_of(service, "keeps").calls.breaker.reset()
            return told() and {one.fields["n"] for one in await service.dead_letters.list()} == {25}

        await until(are_dead)
        counts = Counter(numbers(home))
        assert all(counts[n] <= 2 for n in range(MANY) if n != 25)
        assert {one.attempts for one in await service.dead_letters.list()} == {5}


@pytest.mark.parametrize(
    "hang",
    ["    if context['n'] == 20: await asyncio.sleep(999)\n", "    while context['n'] == 20: pass\n"],
    ids=["awaits", "holds the loop"],
)
async def test_one_that_hangs_is_over_its_own_time_and_no_other_is(home: Home, hang: str) -> None:
    home.retries = (60.0,)
    source = "import asyncio\n" + home.noting("keeps", "1").replace("def handle", "async def handle") + hang
    home.plant("keeps", DURABLE + "timeout: 0.4\n", source)
    async with served(home, MemoryEngine()) as (registry, service):
        fire(registry, MANY)

        async def is_alone() -> bool:
            return numbers(home) == [*range(MANY)] and (await service.info("keeps")).owed == 1

        await until(is_alone)
        status = await service.info("keeps")
        assert (status.failures, status.restarts) == (1, 0)
        assert status.last_error
        assert "was over its 0.4 s" in status.last_error.message


async def test_each_asks_for_itself_with_the_rights_of_whom_it_is_about(home: Home) -> None:
    source = home.noting("keeps", "1") + "    context.gateway.store.set(str(context['n']), context['id'])\n"
    home.plant("keeps", DURABLE + "uses: [store]\n", source)
    async with served(home, MemoryEngine()) as (registry, _):
        fire(registry, MANY)
        await until(lambda: len(home.granted) == MANY)
        for n, (_, verb, params, during) in enumerate(home.granted):
            assert (verb, params["key"], params["value"]) == ("store.set", str(n), during)


async def test_a_context_variable_is_of_one_event(home: Home) -> None:
    source = "from contextvars import ContextVar\nSEEN = ContextVar('seen', default=None)\n" + home.noting("keeps", "1")
    source = source.replace('context.get("n")', "SEEN.get()") + "    SEEN.set(context['n'])\n"
    home.plant("keeps", DURABLE, source)
    async with served(home, MemoryEngine()) as (registry, _):
        fire(registry, MANY)
        await until(lambda: len(numbers(home)) == MANY)
        assert set(numbers(home)) == {None}


async def test_who_fails_again_and_again_is_left_alone_in_the_middle(home: Home) -> None:
    home.retries = (600.0,)
    home.plant("keeps", DURABLE, home.noting("keeps", "1") + "    raise ValueError\n")
    async with served(home, MemoryEngine()) as (registry, service):
        fire(registry, MANY)
        await until(lambda: hook_of(service, "keeps").calls.breaker.state == "open")
        assert numbers(home) == [0, 1, 2, 3, 4]
        assert (await service.info("keeps")).owed == MANY


async def test_a_stop_in_the_middle_tells_nothing_twice_but_the_one_it_cut(home: Home) -> None:
    source = home.noting("keeps", "1") + "    import asyncio; await asyncio.sleep(0.01)\n"
    home.plant("keeps", DURABLE, source.replace("def handle", "async def handle"))
    async with await open_sqlite(home.root / "journal.db") as engine, served(home, engine) as (registry, _):
        fire(registry, MANY)
        await until(lambda: len(numbers(home)) > 10)
    assert len(numbers(home)) < MANY
    async with await open_sqlite(home.root / "journal.db") as engine, served(home, engine):
        await until(lambda: set(numbers(home)) == set(range(MANY)))
        assert len(numbers(home)) <= MANY + 1


async def test_in_parallel_one_that_takes_long_holds_up_no_other(home: Home) -> None:
    source = home.noting("keeps", "1") + "    import asyncio\n    if context['n'] == 0: await asyncio.sleep(999)\n"
    home.plant(
        "keeps", DURABLE + "mode: parallel\nmax: 4\ntimeout: 60\n", source.replace("def handle", "async def handle")
    )
    async with served(home, MemoryEngine()) as (registry, service):
        fire(registry, MANY)
        await until(lambda: len(numbers(home)) == MANY)

        async def is_one_left() -> bool:
            return (await service.info("keeps")).owed == 1

        await until(is_one_left)


async def test_how_far_a_hook_is_behind_is_told_and_is_a_matter_to_look_at(home: Home) -> None:
    journal = home.root / "journal.db"
    folder = home.plant("keeps", DURABLE, home.noting("keeps", "1"))
    async with started(home):
        pass
    (folder / "handler.py").write_text("broken(\n")
    async with await open_sqlite(journal) as engine:
        await put_at_age(engine, 90 / records.DAY, "my:old", journal)
    async with started(home) as (_, service):
        (status,) = await service.status()
        assert status.owed == 1
        assert 90 <= status.behind < 150
        kernel = find_kernel_support()
        assert any("keeps is 1m3" in said for said in list_hook_problems([status], kernel, ""))
        (folder / "handler.py").write_text(home.noting("keeps", "2"))
        await until(lambda: numbers(home) == [1])

        async def is_even() -> bool:
            return (await service.info("keeps")).behind == 0

        await until(is_even)
        assert not list_hook_problems(await service.status(), kernel, "")


async def test_what_a_filter_leaves_out_is_done_beside_what_it_takes(home: Home) -> None:
    home.plant("keeps", DURABLE + "when: {even: true}\n", home.noting("keeps", "1"))
    engine = MemoryEngine()
    async with served(home, engine) as (registry, service):
        for n in range(MANY):
            registry.emit("my:event", n=n, even=n % 2 == 0)
            registry.emit("my:event", n=n, even=False)

        async def is_over() -> bool:
            return (await service.info("keeps")).owed == 0

        await until(lambda: len(numbers(home)) == MANY // 2)
        await until(is_over)
        assert numbers(home) == [*range(0, MANY, 2)]
