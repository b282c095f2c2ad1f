"""Any sequence of calls has the same outcome in SQLite, restarts and kills of its queue included, as in memory."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.engine import Clock, ConsumerSpec, Engine, NewRecord, SettledRecords, open_sqlite
from gateway.errors import EngineError
from gateway.testing.memory_engine import MemoryEngine

SUBJECTS = st.sampled_from(["a.1", "a.2", "b.1", "b.1.x", "c"])
PATTERNS = st.sampled_from(["a.*", "b.>", "*.1", ">", "c", "a.1", "b.1.*"])
NAMES = st.sampled_from(["one", "two"])
IDS = st.one_of(st.none(), st.sampled_from(["m1", "m2", "m3"]))
EXPECTED = st.one_of(st.none(), st.integers(0, 12))
TTLS = st.one_of(st.none(), st.sampled_from([10.0, 100.0]))
PUTS = st.builds(NewRecord, SUBJECTS, st.binary(max_size=3), IDS, EXPECTED, TTLS)


class Journals(RuleBasedStateMachine):
    """The same done to both, by a clock that stands still until it is moved."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="journal-"))
        self.now = 1000.0
        self.clock = Clock(lambda: self.now, lambda: self.now, lambda: self.now)
        self.runner = asyncio.Runner()
        self.model = MemoryEngine(self.clock)
        self.deliveries: list[tuple[Any, Any]] = []
        self.consumers: dict[str, tuple[Any, Any]] = {}
        self.specs: dict[str, ConsumerSpec] = {}
        self.open()

    def open(self) -> None:
        self.engine = self.run(open_sqlite(self.folder / "journal.db", clock=self.clock))

    def run(self, awaitable: Awaitable[Any]) -> Any:
        async def main() -> Any:
            return await awaitable

        return self.runner.run(main())

    def outcome(self, awaitable: Awaitable[Any]) -> Any:
        try:
            return self.run(awaitable)
        except EngineError as error:
            return type(error)

    def both(self, name: str, *args: Any) -> Any:
        """Call both, and see that the same came of it."""
        outcomes = [self.outcome(getattr(engine, name)(*args)) for engine in (self.engine, self.model)]
        assert outcomes[0] == outcomes[1], name
        return outcomes[0]

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

    @rule(subject=SUBJECTS, data=st.binary(max_size=3))
    def follow(self, subject: str, data: bytes) -> None:
        """An append that knows what was last."""
        last = self.both("last", subject)
        self.both("append", NewRecord(subject, data, expect=last.seq if last else 0))

    @rule(pattern=PATTERNS, after=st.integers(0, 10), limit=st.integers(0, 5))
    def read(self, pattern: str, after: int, limit: int) -> None:
        self.both("read", pattern, after, limit)

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
        spec = ConsumerSpec(name, tuple(patterns), ack_wait=30, max_inflight=most, new_only=new_only)
        self.specs[name] = spec
        self.consumers[name] = (self.run(self.engine.consumer(spec)), self.run(self.model.consumer(spec)))

    @rule(name=NAMES)
    def forget(self, name: str) -> None:
        self.both("forget_consumer", name)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), n=st.integers(0, 4))
    def fetch(self, data: st.DataObject, n: int) -> None:
        ours, models = self.consumers[data.draw(st.sampled_from(sorted(self.consumers)))]
        found, expected = self.outcome(ours.fetch(n, 0)), self.outcome(models.fetch(n, 0))
        if not isinstance(expected, list):
            assert found is expected
            return
        assert [(d.record, d.attempt) for d in found] == [(d.record, d.attempt) for d in expected]
        self.deliveries += zip(found, expected, strict=True)

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data(), verb=st.sampled_from(["ack", "nak", "progress", "later"]))
    def answer(self, data: st.DataObject, verb: str) -> None:
        for delivery in self.deliveries[data.draw(st.integers(0, len(self.deliveries) - 1))]:
            self.run(delivery.nak(40) if verb == "later" else getattr(delivery, verb)())

    @rule(seconds=st.sampled_from([1.0, 11.0, 31.0, 101.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def restart(self) -> None:
        self.run(self.engine.close())
        self.open()
        for consumer in self.model._consumers.values():
            for owed in consumer.owed.values():
                owed.due = 0
        self.deliveries.clear()
        for name in list(self.consumers):
            if name in self.model._consumers:
                self.consumers[name] = (self.run(self.engine.consumer(self.specs[name])), self.consumers[name][1])
            else:
                del self.consumers[name]

    @rule()
    def count(self) -> None:
        """Behind a write, for that is when SQLite removes what is over."""
        self.both("purge", "nothing", None)
        for name in ("one", "two"):
            self.both("depth", name)
        assert self.run(self.engine.health()).records == self.run(self.model.health()).records

    @invariant()
    def the_same_is_there(self) -> None:
        self.both("read", ">", 0, 1000)

    def teardown(self) -> None:
        self.run(self.engine.close())
        self.runner.close()
        shutil.rmtree(self.folder)


TestJournals = Journals.TestCase
TestJournals.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
