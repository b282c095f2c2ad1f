"""Any sequence of calls has the same outcome on NATS, on one server and on three, as in memory.

The servers' clock goes on by itself, so nothing here grows old; and what they say of a consumer comes a moment later
than what was done, so that is waited for.
"""

import uuid
from typing import Any, cast

import anyio
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from gateway.cluster.nats.engine import NatsEngine, open_nats
from gateway.engine.interface import ConsumerSpec, NewRecord, Record
from gateway.errors import EngineError
from tests.engine.conftest import Known
from tests.engine.journal_pair import EXPECTED, IDS, NAMES, PATTERNS, SUBJECTS, JournalPair
from tests.engine.memory_engine import MemoryEngine
from tests.spine import until

pytestmark = pytest.mark.thorough

CONSUMERS = {"one": ("a.*", "b.1.x"), "two": (">",)}


def make_put(subject: str, data: bytes, msg_id: str | None, expect: int | None) -> NewRecord:
    """Its id is of its subject: of others the servers know ids for a while alone."""
    return NewRecord(subject, data, msg_id and f"{msg_id} of {subject}", expect)


PUTS = st.builds(make_put, SUBJECTS, st.binary(max_size=3), IDS, EXPECTED)
EXAMPLES, STEPS = 25, 30
LIMIT = 900  # seconds; the servers write each word to the disk, and there are slow ones
TOLD_SECONDS = 60.0  # by when a server has told of what was done


def shown(outcome: Any) -> Any:
    """Without its time."""
    if isinstance(outcome, list):
        return [shown(one) for one in outcome]
    return (outcome.seq, outcome.subject, outcome.data) if isinstance(outcome, Record) else outcome


def make_settings(examples: int) -> settings:
    checks = [HealthCheck.too_slow]
    return settings(max_examples=examples, stateful_step_count=STEPS, deadline=None, suppress_health_check=checks)


class ServerJournals(JournalPair):
    """Each has its own clock."""

    server: str
    is_alone: bool  # then what it wrote lately is read from memory
    later = 400.0

    def __init__(self) -> None:
        super().__init__(MemoryEngine())
        self.url = f"{self.server}/t{uuid.uuid4().hex[:12]}"
        self.engine = self.open()
        self.is_purged = False  # a server may count what it had not handed out, until it comes there
        self.given_back: set[tuple[str, int]] = set()  # a purge makes a server forget that these are to come at once

    def open(self) -> NatsEngine:
        engine: NatsEngine = self.run(open_nats(self.url))
        return cast("NatsEngine", Known(engine)) if self.is_alone else engine

    def shown(self, outcome: Any) -> Any:
        return shown(outcome)

    @initialize(count=st.integers(0, 4))
    def begin(self, count: int) -> None:
        """So that something is handed out and answered in nearly all sequences."""
        for _ in range(count):
            self.both("append", NewRecord("a.1", b""))
        self.consumer("two", 3, new_only=False)

    @rule(puts=st.lists(PUTS, min_size=1, max_size=3))
    def append(self, puts: list[NewRecord]) -> None:
        self.both("append", *puts)

    @precondition(lambda self: not self.given_back)
    @rule(pattern=PATTERNS, upto=st.one_of(st.none(), st.integers(0, 20)), after=st.integers(0, 10))
    def purge(self, pattern: str, upto: int | None, after: int) -> None:
        self.both("purge", pattern, upto, after)
        self.is_purged = True

    @rule(name=NAMES, most=st.integers(1, 4), new_only=st.booleans())
    def consumer(self, name: str, most: int, new_only: bool) -> None:
        self.open_consumer(ConsumerSpec(name, CONSUMERS[name], ack_wait=300, max_inflight=most, new_only=new_only))

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

    def note_answer(self, name: str, record: Record, verb: str) -> None:
        if verb == "nak":
            self.given_back.add((name, record.seq))

    @rule()
    def restart(self) -> None:
        """What was handed out stays out, as where another gateway goes on."""
        self.run(self.engine.close())
        self.engine = self.open()
        self.take_up_consumers()

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


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("servers", ["nats_server", "nats_servers"])
def test_nats_does_what_memory_does(request: pytest.FixtureRequest, servers: str) -> None:
    class Journals(ServerJournals):
        server = request.getfixturevalue(servers)
        is_alone = servers == "nats_server"

    run_state_machine_as_test(Journals, settings=make_settings(EXAMPLES))
