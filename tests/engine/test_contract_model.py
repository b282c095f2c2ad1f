"""Any sequence of calls has the same outcome in SQLite, restarts and kills of its queue included, as in memory."""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from gateway.engine.interface import ConsumerSpec, Engine, NewRecord, SettledRecords
from gateway.engine.journal_clock import Clock
from gateway.engine.sqlite.engine import open_sqlite
from tests.engine.journal_pair import EXPECTED, IDS, NAMES, PATTERNS, SUBJECTS, JournalPair
from tests.engine.memory_engine import MemoryEngine

TTLS = st.one_of(st.none(), st.sampled_from([10.0, 100.0]))
PUTS = st.builds(NewRecord, SUBJECTS, st.binary(max_size=3), IDS, EXPECTED, TTLS)


class Journals(JournalPair):
    """Journals with a clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="journal-"))
        self.now = 1000.0
        self.clock = Clock(lambda: self.now, lambda: self.now, lambda: self.now)
        super().__init__(MemoryEngine(self.clock))
        self.open()

    def open(self) -> None:
        self.engine = self.run(open_sqlite(self.folder / "journal.db", clock=self.clock))

    @rule(puts=st.lists(PUTS, min_size=1, max_size=3))
    def append(self, puts: list[NewRecord]) -> None:
        self.both("append", *puts)

    @rule(puts=st.lists(st.lists(PUTS, min_size=1, max_size=2), min_size=2, max_size=6))
    def append_at_once(self, puts: list[list[NewRecord]]) -> None:
        async def all_of(engine: Engine) -> list[Any]:
            found = await asyncio.gather(*(engine.append(*some) for some in puts), return_exceptions=True)
            return [item if isinstance(item, list) else type(item) for item in found]

        assert self.run(all_of(self.engine)) == self.run(all_of(self.model))

    @rule(puts=st.lists(PUTS, max_size=2), subject=SUBJECTS, upto=st.integers(0, 12), ttl=st.just(10.0))
    def settle(self, puts: list[NewRecord], subject: str, upto: int, ttl: float) -> None:
        async def settled(engine: Engine) -> list[int]:
            return await engine.append(*puts, settled=[SettledRecords(subject, upto, ttl)])

        assert self.outcome(settled(self.engine)) == self.outcome(settled(self.model))

    @rule(pattern=PATTERNS, upto=st.one_of(st.none(), st.integers(0, 20)), after=st.integers(0, 10))
    def purge(self, pattern: str, upto: int | None, after: int) -> None:
        self.both("purge", pattern, upto, after)

    @rule(
        name=NAMES,
        patterns=st.lists(PATTERNS, min_size=1, max_size=2, unique=True),
        most=st.integers(1, 4),
        new_only=st.booleans(),
    )
    def consumer(self, name: str, patterns: list[str], most: int, new_only: bool) -> None:
        self.open_consumer(ConsumerSpec(name, tuple(patterns), ack_wait=30, max_inflight=most, new_only=new_only))

    @rule(name=NAMES)
    def forget(self, name: str) -> None:
        self.both("forget_consumer", name)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), n=st.integers(0, 4))
    def fetch(self, data: st.DataObject, n: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.consumers)))
        ours, models = self.consumers[name]
        found, expected = self.outcome(ours.fetch(n, 0)), self.outcome(models.fetch(n, 0))
        if not isinstance(expected, list):
            assert found is expected
            return
        assert [(d.record, d.attempt) for d in found] == [(d.record, d.attempt) for d in expected]
        self.deliveries += ((name, *both) for both in zip(found, expected, strict=True))

    @rule(seconds=st.sampled_from([1.0, 11.0, 31.0, 101.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def restart(self) -> None:
        self.run(self.engine.close())
        self.open()
        for consumer in self.model._consumers.values():
            consumer.make_due()
        self.take_up_consumers()

    @rule()
    def count(self) -> None:
        """Behind a write, for that is when SQLite removes what is over."""
        self.both("purge", "nothing", None)
        for name in ("one", "two"):
            self.both("depth", name)
        assert self.run(self.engine.health()).records == self.run(self.model.health()).records

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)


TestJournals = Journals.TestCase
TestJournals.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
