"""Any sequence of calls has the same outcome on NATS, on one server and on three, as in memory.

The servers' clock goes on by itself, so nothing here grows old; and what they say of a consumer comes a moment later
than what was done, so that is waited for.
"""

import asyncio
import uuid
from collections.abc import Awaitable
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from gateway.engine import ConsumerSpec, NewRecord, Record
from gateway.engine.nats.engine import NatsEngine, open_nats
from gateway.errors import EngineError
from gateway.testing.memory_engine import MemoryEngine
from tests.engine.conftest import LastingRight
from tests.spine import until

SUBJECTS = st.sampled_from(["a.1", "a.2", "b.1", "b.1.x", "c"])
READ = st.sampled_from(["a.*", "b.>", "*.1", ">", "c", "a.1", "b.1.*"])
CONSUMERS = {"one": ("a.*", "b.1.x"), "two": (">",)}
NAMES = st.sampled_from(sorted(CONSUMERS))
IDS = st.one_of(st.none(), st.sampled_from(["m1", "m2", "m3"]))
EXPECTED = st.one_of(st.none(), st.integers(0, 12))


def make_put(subject: str, data: bytes, msg_id: str | None, expect: int | None) -> NewRecord:
    """Its id is of its subject: of others the servers know ids for a while alone."""
    return NewRecord(subject, data, msg_id and f"{msg_id} of {subject}", expect)


PUTS = st.builds(make_put, SUBJECTS, st.binary(max_size=3), IDS, EXPECTED)
EXAMPLES, STEPS = 25, 30
LIMIT = 900  # seconds; the servers write each word to the disk, and there are slow ones
TOLD_SECONDS = 10.0  # by when a server has told of what was done


def shown(outcome: Any) -> Any:
    """What is the same on both: each has its own clock."""
    if isinstance(outcome, list):
        return [shown(one) for one in outcome]
    if isinstance(outcome, Record):
        return (outcome.seq, outcome.subject, outcome.data)
    return outcome


class ServerJournals(RuleBasedStateMachine):
    """The same done to both."""

    server: str
    is_alone: bool  # then what it wrote lately is read from memory

    def __init__(self) -> None:
        super().__init__()
        self.url = f"{self.server}/t{uuid.uuid4().hex[:12]}"
        self.runner = asyncio.Runner()
        self.model = MemoryEngine()
        self.engine = self.open()
        self.deliveries: list[tuple[str, Any, Any]] = []
        self.consumers: dict[str, tuple[Any, Any]] = {}
        self.specs: dict[str, ConsumerSpec] = {}
        self.is_purged = False  # a server may count what it had not handed out, until it comes there
        self.given_back: set[tuple[str, int]] = set()  # a purge makes a server forget that these are to come at once

    def open(self) -> NatsEngine:
        engine: NatsEngine = self.run(open_nats(self.url))
        if self.is_alone:
            engine.work_alone(LastingRight())
        return engine

    def run(self, awaitable: Awaitable[Any]) -> Any:
        async def main() -> Any:
            return await awaitable

        return self.runner.run(main())

    def outcome(self, awaitable: Awaitable[Any]) -> Any:
        try:
            return shown(self.run(awaitable))
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

    @rule(subject=SUBJECTS, data=st.binary(max_size=3))
    def follow(self, subject: str, data: bytes) -> None:
        """An append that knows what was last."""
        last = self.both("last", subject)
        self.both("append", NewRecord(subject, data, expect=last[0] if last else 0))

    @rule(pattern=READ, after=st.integers(0, 10), limit=st.integers(0, 5))
    def read(self, pattern: str, after: int, limit: int) -> None:
        self.both("read", pattern, after, limit)

    @precondition(lambda self: not self.given_back)
    @rule(pattern=READ, upto=st.one_of(st.none(), st.integers(0, 20)), after=st.integers(0, 10))
    def purge(self, pattern: str, upto: int | None, after: int) -> None:
        self.both("purge", pattern, upto, after)
        self.is_purged = True

    @rule(name=NAMES, most=st.integers(1, 4), new_only=st.booleans())
    def consumer(self, name: str, most: int, new_only: bool) -> None:
        spec = ConsumerSpec(name, CONSUMERS[name], ack_wait=300, max_inflight=most, new_only=new_only)
        self.specs[name] = spec
        self.consumers[name] = (self.run(self.engine.consumer(spec)), self.run(self.model.consumer(spec)))

    @rule(name=NAMES)
    def forget(self, name: str) -> None:
        self.both("forget_consumer", name)
        self.deliveries = [one for one in self.deliveries if one[0] != name]
        self.given_back = {one for one in self.given_back if one[0] != name}

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), n=st.integers(0, 4))
    def fetch(self, data: st.DataObject, n: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.consumers)))
        ours, models = self.consumers[name]
        try:
            expected = self.run(models.fetch(n, 0))
        except EngineError:
            assert self.outcome(ours.fetch(n, 0)) is EngineError
            return
        found = self.run(self.fetch_all(ours, len(expected)) if expected else ours.fetch(n, 0))
        assert sorted((one.record.seq, one.attempt) for one in found) == sorted(
            (one.record.seq, one.attempt) for one in expected
        )
        theirs = {one.record.seq: one for one in expected}
        self.given_back -= {(name, seq) for seq in theirs}
        self.deliveries += [(name, one, theirs[one.record.seq]) for one in found]

    async def fetch_all(self, consumer: Any, count: int) -> list[Any]:
        found: list[Any] = []
        with anyio.move_on_after(TOLD_SECONDS):
            while len(found) < count:
                found += await consumer.fetch(count - len(found), 1)
        return found

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data(), verb=st.sampled_from(["ack", "nak", "progress", "later"]))
    def answer(self, data: st.DataObject, verb: str) -> None:
        name, *both = self.deliveries[data.draw(st.integers(0, len(self.deliveries) - 1))]
        if verb == "nak":
            self.given_back.add((name, both[0].record.seq))
        for delivery in both:
            self.run(delivery.nak(400) if verb == "later" else getattr(delivery, verb)())

    @rule()
    def restart(self) -> None:
        """What was handed out stays out, as where another gateway goes on."""
        self.run(self.engine.close())
        self.engine = self.open()
        self.deliveries.clear()
        for name in self.run(self.model.consumers()):
            self.consumers[name] = (self.run(self.engine.consumer(self.specs[name])), self.consumers[name][1])
        self.consumers = {name: both for name, both in self.consumers.items() if not both[1].is_forgotten}

    @rule()
    def count(self) -> None:
        for name in CONSUMERS:
            self.run(self.is_told(name))
        assert self.run(self.engine.health()).records == self.run(self.model.health()).records
        assert sorted(self.run(self.engine.consumers())) == sorted(self.run(self.model.consumers()))

    async def is_told(self, name: str) -> None:
        depth, owed = await self.model.depth(name), await self.model.list_owed(name, float("inf"))

        async def is_same() -> bool:
            found = await self.engine.depth(name)
            return found >= depth if self.is_purged else found == depth

        await until(is_same, f"{depth} before {name}", TOLD_SECONDS)
        assert {one.seq for one in owed} <= {one.seq for one in await self.engine.list_owed(name, float("inf"))}

    @invariant()
    def the_same_is_there(self) -> None:
        self.both("read", ">", 0, 1000)

    def teardown(self) -> None:
        self.run(self.engine.close())
        self.runner.close()


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("servers", ["nats_server", "nats_servers"])
def test_nats_does_what_memory_does(request: pytest.FixtureRequest, servers: str) -> None:
    class Journals(ServerJournals):
        server = request.getfixturevalue(servers)
        is_alone = servers == "nats_server"

    run_state_machine_as_test(
        Journals,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
