"""Subjects and patterns: what `matches` says holds for every way of asking."""

import asyncio
import uuid

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.cluster.nats.engine import open_nats
from gateway.engine.interface import ConsumerSpec, Engine, NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.engine.subjects import check_pattern, check_subject, compile_patterns, get_literal_prefix, matches
from tests.engine.memory_engine import MemoryEngine
from tests.spine import until

SEGMENTS = st.sampled_from(["a", "b", "ab", "/", "-", "[a]", "?", "Ä", "%", "_", "\\", "a+"])
SUBJECTS = st.lists(SEGMENTS, min_size=1, max_size=4).map(".".join)
INNER = st.lists(st.one_of(SEGMENTS, st.just("*")), max_size=3)
PATTERNS = st.tuples(INNER, st.one_of(SEGMENTS, st.sampled_from("*>"))).map(
    lambda parts: ".".join([*parts[0], parts[1]])
)

TABLE = [
    ("a", "a", True),
    ("a", "a.b", False),
    ("a.b", "a", False),
    ("*", "a", True),
    ("*", "a.b", False),
    ("a.*", "a.b", True),
    ("a.*", "a", False),
    ("a.*", "a.b.c", False),
    ("a.*.c", "a.b.c", True),
    ("a.*.c", "a.b.d", False),
    ("*.*", "a.b", True),
    (">", "a", True),
    (">", "a.b.c", True),
    ("a.>", "a.b", True),
    ("a.>", "a.b.c.d", True),
    ("a.>", "a", False),
    ("a.>", "ab.c", False),
    ("a.*.>", "a.b.c", True),
    ("a.*.>", "a.b", False),
    ("a.*.c.>", "a.x.y.c.d", False),
    ("a.*.c.>", "a.x.c.d.e", True),
]


@pytest.mark.parametrize(("pattern", "subject", "expected"), TABLE)
def test_the_table_of_wildcards(pattern: str, subject: str, expected: bool) -> None:
    assert matches(pattern, subject) is expected
    assert bool(compile_patterns([pattern])(subject)) is expected


@settings(deadline=None)
@given(st.lists(PATTERNS, max_size=3), SUBJECTS)
def test_a_compiled_test_agrees_with_the_definition(patterns: list[str], subject: str) -> None:
    assert bool(compile_patterns(patterns)(subject)) == any(matches(pattern, subject) for pattern in patterns)


@settings(deadline=None)
@given(PATTERNS, st.text(alphabet="ab.*>\n ", max_size=6))
def test_a_compiled_test_agrees_on_any_text_at_all(pattern: str, text: str) -> None:
    assert bool(compile_patterns([pattern])(text)) == matches(pattern, text)


@settings(deadline=None)
@given(PATTERNS, SUBJECTS)
def test_what_matches_begins_with_the_literal_prefix(pattern: str, subject: str) -> None:
    check_pattern(pattern)
    check_subject(subject)
    if matches(pattern, subject):
        assert subject.startswith(get_literal_prefix(pattern))


@pytest.mark.parametrize("kind", ["sqlite", "memory", "nats"])
@settings(max_examples=40, deadline=None)
@example(subjects=["a", "b.b.a"], patterns=["*.a"])
@given(
    subjects=st.lists(SUBJECTS, min_size=1, max_size=12),
    patterns=st.lists(PATTERNS, min_size=1, max_size=3),
)
def test_every_engine_agrees_with_the_definition(
    kind: str, tmp_path_factory: pytest.TempPathFactory, nats_server: str, subjects: list[str], patterns: list[str]
) -> None:
    """read, consumers, tails and purge."""

    async def ask(engine: Engine) -> None:
        tail = await engine.tail(*patterns)
        consumer = await engine.consumer(ConsumerSpec("c", tuple(patterns)))
        await engine.append(*(NewRecord(subject, b"") for subject in subjects))
        await engine.append(NewRecord("end", b""))
        expected = [subject for subject in [*subjects, "end"] if any(matches(p, subject) for p in patterns)]

        async def is_told() -> bool:
            return await engine.depth("c") == len(expected)

        await until(is_told, "what was appended, before its consumer")  # a server tells a moment later
        assert [delivery.record.subject for delivery in await consumer.fetch(100, 0)] == expected
        assert [(await anext(tail)).subject for _ in expected] == expected
        first = [subject for subject in [*subjects, "end"] if matches(patterns[0], subject)]
        assert [record.subject for record in await engine.read(patterns[0])] == first
        assert await engine.purge(patterns[0]) == len(first)
        assert await engine.read(patterns[0]) == []

    async def main() -> None:
        if kind == "memory":
            async with MemoryEngine() as memory:
                await ask(memory)
        elif kind == "nats":
            async with await open_nats(f"{nats_server}/t{uuid.uuid4().hex[:12]}") as nats:
                await ask(nats)
        else:
            async with await open_sqlite(tmp_path_factory.mktemp("journal") / "journal.db") as sqlite:
                await ask(sqlite)

    asyncio.run(main())
