"""The grammar of subjects and patterns, and compiled patterns. `matches` defines when a pattern matches."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from gateway.engine.interface import MOST_AT_ONCE, ConsumerSpec, NewRecord, count_parts
from gateway.errors import AppendSizeError

SEGMENT = r"[^\s\x00-\x1f\x7f.*>]+"
SUBJECT = re.compile(rf"{SEGMENT}(?:\.{SEGMENT})*")
TOKEN = re.compile(r"[0-9a-f]{24}")
PATTERN = re.compile(rf"(?:(?:\*|{SEGMENT})\.)*(?:\*|>|{SEGMENT})")

SubjectMatcher = Callable[[str], object]  # the result is true if the subject matches


@lru_cache(1024)
def check_subject(subject: str) -> None:
    if not SUBJECT.fullmatch(subject):
        raise ValueError(
            f"{subject!r} is not a subject: it takes segments joined by dots, none empty, without space, '*' or '>'"
        )


@lru_cache(1024)
def check_pattern(pattern: str) -> None:
    if not PATTERN.fullmatch(pattern):
        raise ValueError(
            f"{pattern!r} is not a pattern: it takes segments joined by dots, none empty; "
            "'*' matches a whole segment, '>' only at the end"
        )


def check_new_records(puts: Sequence[NewRecord]) -> None:
    for put in puts:
        check_subject(put.subject)
        if put.ttl is not None and put.ttl <= 0:
            raise ValueError(
                f"a time to live of {put.ttl:g} s on {put.subject!r}: it must be above 0, or None for ever"
            )
    if (parts := sum(map(count_parts, puts))) > MOST_AT_ONCE:
        raise AppendSizeError(f"an append of {parts} parts: at most {MOST_AT_ONCE} are taken at once; append less")


def check_consumer_spec(spec: ConsumerSpec) -> None:
    if not spec.name:
        raise ValueError("a consumer needs a name")
    for pattern in spec.patterns:
        check_pattern(pattern)
    if not spec.patterns or spec.ack_wait <= 0 or spec.max_inflight < 1:
        raise ValueError(
            f"the consumer {spec.name!r} needs a pattern, an ack_wait above 0, a max_inflight of 1 or more"
        )


def matches(pattern: str, subject: str) -> bool:
    """Test whether a pattern matches a subject; every engine must agree with this definition."""
    wanted, given = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(given) <= len(wanted):
            return False
        given = given[: len(wanted)]
    return len(wanted) == len(given) and all(w in ("*", g) for w, g in zip(wanted, given, strict=True))


def compile_patterns(patterns: Iterable[str]) -> SubjectMatcher:
    """Compile several patterns into one test of a subject."""
    return _compile(tuple(patterns))


@lru_cache(512)
def _compile(patterns: tuple[str, ...]) -> SubjectMatcher:
    expressions = (re.sub(">$", ".*", re.escape(pattern).replace(r"\*", "[^.]*")) for pattern in patterns)
    return re.compile("|".join(expressions) or r"(?!)", re.DOTALL).fullmatch


def get_literal_prefix(pattern: str) -> str:
    """Return the pattern up to its first wildcard: all matching subjects start with this prefix."""
    return re.split("[*>]", pattern, maxsplit=1)[0]
