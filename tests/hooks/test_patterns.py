"""Which subscriptions a name meets: whole segments, and other globs."""

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hooks.patterns import Patterns, has_whole_segments, is_exact


def matches(pattern: str, name: str) -> bool:
    patterns: Patterns[str] = Patterns()
    patterns.add(pattern, pattern)
    exact, globs = patterns.match(name)
    return bool(exact or globs)


@pytest.mark.row("HRM-15")
@pytest.mark.row("STR-10")
@pytest.mark.parametrize(
    ("pattern", "name", "does"),
    [
        ("tool:before", "tool:before", True),
        ("tool:before", "tool:before:x", False),
        ("tool:*", "tool:before", True),
        ("tool:*", "tool:a:b:c", True),
        ("tool:*", "tool", False),
        ("tool:*", "tools:before", False),
        ("*", "tool:before", True),
        ("*", "plain", True),
        ("*:before", "tool:before", True),
        ("*:before", "llm:before", True),
        ("*:before", "tool:after", False),
        ("*:before", "a:b:before", False),
        ("a:*:c", "a:b:c", True),
        ("a:*:c", "a:b:b:c", False),
        ("a:*:c", "a:b:c:d", False),
        ("a:*:*", "a:b:c:d", True),
        ("a:*:*", "a:b", False),
        ("*:*", "a", False),
        ("command:foo*", "command:foobar", True),
        ("command:foo*", "command:foo:bar", True),
        ("command:foo*", "command:fo", False),
        ("agent:st?rt", "agent:start", True),
        ("agent:[se]*", "agent:end", True),
        ("agent:[se]*", "agent:init", False),
        ("*fore", "tool:before", True),
        ("a[b", "a[b", True),
    ],
)
def test_what_a_pattern_means(pattern, name, does) -> None:
    assert matches(pattern, name) is does


@pytest.mark.parametrize(
    ("pattern", "exact", "whole"),
    [
        ("a:b", True, True),
        ("a:*", False, True),
        ("*:b:*", False, True),
        ("a:b*", False, False),
        ("a:?", False, False),
    ],
)
def test_what_kind_a_pattern_is(pattern, exact, whole) -> None:
    assert (is_exact(pattern), has_whole_segments(pattern)) == (exact, whole)


def test_who_named_the_event_is_told_apart_from_who_matched_it() -> None:
    patterns: Patterns[str] = Patterns()
    for number, pattern in enumerate(["*", "a:*", "a:b", "a:b*", "a:b"]):
        patterns.add(pattern, f"{number} {pattern}")
    exact, globs = patterns.match("a:b")
    assert exact == ["2 a:b", "4 a:b"]
    assert sorted(globs) == ["0 *", "1 a:*", "3 a:b*"]


def reference(pattern: str, name: str) -> bool:
    """The slow way: one regular expression."""
    if not has_whole_segments(pattern):
        return fnmatchcase(name, pattern)
    *front, last = pattern.split(":")
    parts = ["[^:]*" if segment == "*" else re.escape(segment) for segment in front]
    parts.append(".*" if last == "*" else re.escape(last))
    return re.fullmatch(":".join(parts), name, re.DOTALL) is not None


segments = st.sampled_from(["a", "b", "ab", "*", "a*", "?", "", "*b", "[ab]"])
names = st.lists(st.sampled_from(["a", "b", "ab", "abb", ""]), min_size=1, max_size=4).map(":".join)
patterns = st.lists(segments, min_size=1, max_size=4).map(":".join).filter(bool)


@given(st.lists(patterns, max_size=12), names)
def test_the_tree_finds_what_one_expression_for_each_would_find(given_patterns, name) -> None:
    index: Patterns[int] = Patterns()
    for number, pattern in enumerate(given_patterns):
        index.add(pattern, number)
    exact, globs = index.match(name)
    assert sorted(exact + globs) == [n for n, pattern in enumerate(given_patterns) if reference(pattern, name)]


@given(st.lists(patterns, max_size=12), st.data(), names)
def test_what_is_taken_out_leaves_nothing_behind(given_patterns, data, name) -> None:
    index: Patterns[int] = Patterns()
    for number, pattern in enumerate(given_patterns):
        index.add(pattern, number)
    kept = data.draw(st.sets(st.sampled_from(range(len(given_patterns))))) if given_patterns else set()
    for number in set(range(len(given_patterns))) - kept:
        index.discard(given_patterns[number], number)
    fresh: Patterns[int] = Patterns()
    for number in sorted(kept):
        fresh.add(given_patterns[number], number)
    exact, globs = index.match(name)
    assert (sorted(exact), sorted(globs)) == tuple(map(sorted, fresh.match(name)))
    for number in kept:
        index.discard(given_patterns[number], number)
    assert index.is_empty
