"""The same calls to an engine and to one in memory: what both tests of any sequence of calls do, and compare."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.engine.interface import ConsumerSpec, Engine, NewRecord, Record
from gateway.errors import EngineError
from tests.engine.memory_engine import MemoryEngine

SUBJECTS = st.sampled_from(["a.1", "a.2", "b.1", "b.1.x", "c"])
PATTERNS = st.sampled_from(["a.*", "b.>", "*.1", ">", "c", "a.1", "b.1.*"])
NAMES = st.sampled_from(["one", "two"])
IDS = st.one_of(st.none(), st.sampled_from(["m1", "m2", "m3"]))
# What becomes of a delivery; of one that was given back, what comes too late.
ANSWERS = ["ack", "nak", "progress", "later", "nak progress", "nak later", "later nak", "later progress"]
EXPECTED = st.one_of(st.none(), st.integers(0, 12))


class JournalPair(RuleBasedStateMachine):
    """`deliveries` and `consumers` hold the engine's beside those in memory; a delivery with its consumer's name."""

    engine: Engine
    later = 40.0  # seconds for which a delivery is put off

    def __init__(self, model: MemoryEngine) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.model = model
        self.deliveries: list[tuple[str, Any, Any]] = []
        self.consumers: dict[str, tuple[Any, Any]] = {}
        self.specs: dict[str, ConsumerSpec] = {}

    def run(self, awaitable: Awaitable[Any]) -> Any:
        async def main() -> Any:
            return await awaitable

        return self.runner.run(main())

    def shown(self, outcome: Any) -> Any:
        """Return the part that is the same on both."""
        return outcome

    def outcome(self, awaitable: Awaitable[Any]) -> Any:
        try:
            return self.shown(self.run(awaitable))
        except EngineError as error:
            return type(error)

    def both(self, name: str, *args: Any) -> Any:
        """Call both, and see that the same came of it."""
        outcomes = [self.outcome(getattr(engine, name)(*args)) for engine in (self.engine, self.model)]
        assert outcomes[0] == outcomes[1], name
        return outcomes[0]

    def open_consumer(self, spec: ConsumerSpec) -> None:
        self.specs[spec.name] = spec
        self.consumers[spec.name] = (self.run(self.engine.consumer(spec)), self.run(self.model.consumer(spec)))

    def take_up_consumers(self) -> None:
        """After a restart: of those that are still there."""
        self.deliveries.clear()
        there = self.run(self.model.consumers())
        models = {name: both[1] for name, both in self.consumers.items() if name in there}
        self.consumers = {name: (self.run(self.engine.consumer(self.specs[name])), one) for name, one in models.items()}

    @rule(subject=SUBJECTS, data=st.binary(max_size=3))
    def follow(self, subject: str, data: bytes) -> None:
        """An append that knows what was last."""
        self.both("last", subject)
        last = self.run(self.model.last(subject))
        self.both("append", NewRecord(subject, data, expect=last.seq if last else 0))

    @rule(pattern=PATTERNS, after=st.integers(0, 10), limit=st.integers(0, 5))
    def read(self, pattern: str, after: int, limit: int) -> None:
        self.both("read", pattern, after, limit)

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data(), verbs=st.sampled_from(ANSWERS))
    def answer(self, data: st.DataObject, verbs: str) -> None:
        name, *both = self.deliveries[data.draw(st.integers(0, len(self.deliveries) - 1))]
        for verb in verbs.split():
            self.note_answer(name, both[0].record, verb)
            for delivery in both:
                self.run(delivery.nak(self.later) if verb == "later" else getattr(delivery, verb)())

    def note_answer(self, name: str, record: Record, verb: str) -> None:
        """For those to whom it matters."""

    @invariant()
    def the_same_is_there(self) -> None:
        self.both("read", ">", 0, 1000)

    def teardown(self) -> None:
        self.run(self.engine.close())
        self.runner.close()
