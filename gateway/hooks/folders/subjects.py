"""The names that a hook has in the journal: its consumer, its dead letters, and the subjects of its subscriptions.

A folder may have any name that a person writes; a journal's segment may not. A name that is no segment is given the
part of it that is, and a mark made of the whole name, so that two folders never share one.
"""

import hashlib
import re
from collections.abc import Iterable

from gateway import records
from gateway.engine.subjects import matches

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_SEGMENT = re.compile(r"[^\s\x00-\x1f\x7f.*>:]+\Z")


def subject_token_of(folder: str) -> str:
    """One segment that stands for the folder: `activity-log` -> `hook-activity-log`."""
    if _PLAIN_NAME.match(folder):
        return f"hook-{folder}"
    legible = re.sub(r"[^A-Za-z0-9_-]+", "_", folder)[:40]
    return f"hook-{legible}-{hashlib.sha256(folder.encode()).hexdigest()[:8]}"


def dead_letter_subject_of(folder: str, seq: int | None = None) -> str:
    """Where this event is kept when the hook could not be given it; without a sequence, the pattern of all of them."""
    return records.dead_letter_subject_of(subject_token_of(folder), seq)


def retry_subject_of(folder: str) -> str:
    """Where a dead letter that is tried again is put: this hook's consumer alone reads it."""
    return records.retry_subject_of(subject_token_of(folder))


def can_be_durable(pattern: str) -> bool:
    """Whether the pattern has whole segments only, as the journal's filters want them."""
    return all(part == "*" or _SEGMENT.match(part) for part in pattern.split(":"))


def build_filters(folder: str, patterns: Iterable[str]) -> tuple[str, ...]:
    """The consumer's filters: none of them covered by another, since overlapping ones are refused."""
    subjects = dict.fromkeys(records.event_subject_of(pattern) for pattern in patterns)
    kept = [one for one in subjects if not any(other != one and is_covering(other, one) for other in subjects)]
    return (*_make_disjoint(kept), retry_subject_of(folder))


def is_covering(wide: str, narrow: str) -> bool:
    """Whether every subject under `narrow` falls under `wide`."""
    if wide.endswith(".>"):
        return len(narrow.split(".")) >= len(wide.split(".")) and matches(wide, narrow)
    return not narrow.endswith(".>") and matches(wide, narrow)


def _make_disjoint(subjects: list[str]) -> list[str]:
    """Overlapping filters of which none covers the other (`a.*.c`, `a.b.*`) become one that covers both."""
    for at, one in enumerate(subjects):
        for other in subjects[at + 1 :]:
            if _is_overlapping(one, other):
                both = _merge_subjects(one, other)
                return _make_disjoint([*(subject for subject in subjects if not is_covering(both, subject)), both])
    return subjects


def _is_overlapping(one: str, other: str) -> bool:
    left, right = one.split("."), other.split(".")
    for a, b in zip(left, right, strict=False):
        if ">" in (a, b):
            return True
        if a != b and "*" not in (a, b):
            return False
    return len(left) == len(right)


def _merge_subjects(one: str, other: str) -> str:
    """The narrowest filter that takes in both: the consumer then drops what neither asked for."""
    parts: list[str] = []
    left, right = one.split("."), other.split(".")
    for a, b in zip(left, right, strict=False):
        if ">" in (a, b):
            return ".".join([*parts, ">"])
        parts.append(a if a == b else "*")
    return ".".join(parts)
