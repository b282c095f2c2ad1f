"""Events that every hook has had go when the journal needs their room; those that a hook has not had stay."""

from functools import partial

import pytest

from gateway.cli.doctor import describe_contents
from gateway.engine.sqlite.engine import open_sqlite
from gateway.hooks import HookRegistry
from gateway.records import subjects
from tests.hooks.folders.test_durable import DURABLE, numbers, served
from tests.hooks.folders.workshop import Home, hook_of
from tests.spine import until

pytestmark = pytest.mark.process
BOUND = 4_000_000
TEXT = "x" * 10_000


def are_told(home: Home, last: int) -> bool:
    return len(numbers(home)) > last


async def fire(home: Home, registry: HookRegistry, first: int, last: int) -> None:
    """Emit thirty at a time, a thirteenth of the room, and wait until they are told, as if the hook keeps up."""
    for n in range(first, last):
        registry.emit("my:event", n=n, text=TEXT)
        if n % 30 == 29 or n == last - 1:
            await until(partial(are_told, home, n))


async def test_what_was_told_never_fills_the_journal(home: Home) -> None:
    home.plant("keeps", DURABLE, home.noting("keeps", "1"))
    path = home.root / "journal.db"
    async with await open_sqlite(path, max_bytes=BOUND) as engine, served(home, engine) as (registry, _):
        await fire(home, registry, 0, 600)
        assert (await engine.health()).ok
        assert describe_contents(path).startswith("events of durable hooks ")
        assert numbers(home) == [*range(600)]
        assert await engine.read(subjects.EVENT_SUBJECTS, 0, 5), "what there is room for can be told again"


async def test_an_event_that_one_hook_has_not_had_stays_and_those_beside_it_go(home: Home) -> None:
    home.plant("keeps", DURABLE, home.noting("keeps", "1"))
    late = home.plant("late", "events: ['my:rare']\ndelivery: durable\n", "broken(\n")
    path = home.root / "journal.db"
    async with await open_sqlite(path, max_bytes=BOUND) as engine, served(home, engine) as (registry, service):
        await until(lambda: hook_of(service, "late").process.state == "broken")
        registry.emit("my:rare", n=5, text=TEXT)
        await until(lambda: numbers(home) == [5])
        await fire(home, registry, 0, 600)
        assert (await engine.health()).ok
        (late / "handler.py").write_text(home.noting("late", "1"))
        await until(lambda: home.seen("late") == [["1", "my:rare", 5]])
