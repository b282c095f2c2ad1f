"""What hooks have in the journal under their names: consumers, subjects, and the dead letters that nobody could take.

A dead letter is an event that a durable hook could not be given, kept until it is tried again or thrown away.

A folder may have any name that a person writes; a journal's segment may not. A name that is no segment is given the
part of it that is, and a mark made of the whole name, so that two folders never share one.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

import msgspec

from gateway import records
from gateway.engine.interface import Engine, NewRecord, Record
from gateway.engine.subjects import matches
from gateway.errors import Duplicate, HookError

PAGE = 200
HOOK_PREFIX = "hook:"
TOKEN_PREFIX = "hook-"  # noqa: S105 - of the names of hooks' consumers, no secret

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_SEGMENT = re.compile(r"[^\s\x00-\x1f\x7f.*>:]+\Z")


def subject_token_of(folder: str) -> str:
    """One segment that stands for the folder: `activity-log` -> `hook-activity-log`."""
    if _PLAIN_NAME.match(folder):
        return f"{TOKEN_PREFIX}{folder}"
    legible = re.sub(r"[^A-Za-z0-9_-]+", "_", folder)[:40]
    return f"{TOKEN_PREFIX}{legible}-{hashlib.sha256(folder.encode()).hexdigest()[:8]}"


def dead_letter_subject_of(folder: str, seq: int | None = None) -> str:
    """Where this event is kept when the hook could not be given it; without a sequence, the pattern of all of them."""
    return records.dead_letter_subject_of(subject_token_of(folder), seq)


def retry_subject_of(folder: str) -> str:
    """Where a dead letter that is tried again is put: this hook's consumer alone reads it."""
    return records.retry_subject_of(subject_token_of(folder))


def can_be_durable(pattern: str) -> bool:
    """Has the pattern whole segments only, as the journal's filters want them?"""
    return all(part == "*" or _SEGMENT.match(part) for part in pattern.split(":"))


def build_filters(folder: str, patterns: Iterable[str]) -> tuple[str, ...]:
    """The consumer's filters: none of them covered by another, since overlapping ones are refused."""
    subjects = dict.fromkeys(records.event_subject_of(pattern) for pattern in patterns)
    kept = [one for one in subjects if not any(other != one and is_covering(other, one) for other in subjects)]
    return (*_make_disjoint(kept), retry_subject_of(folder))


def is_covering(wide: str, narrow: str) -> bool:
    """Does every subject under `narrow` fall under `wide`?"""
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


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """`number` is its own, by which it is shown, retried and pruned; `key` is the delivery's."""

    number: int
    hook: str
    event: str
    key: int
    at: float
    attempts: int
    reason: str
    fields: dict[str, object] = {}


class DeadLetters:
    """Lists, repeats and throws away the dead letters in the journal."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def list(self, hook: str = "") -> list[DeadLetter]:
        """The oldest first; of one hook, or of all."""
        return [_dead_letter_from(record, dead) async for record, dead in self._all(hook)]

    async def retry(self, number: int) -> None:
        """Deliver it again, with all repetitions. Raises HookError when there is none of this number."""
        record, dead = await self._one(number)
        try:
            emitted = records.decode(dead.data)
        except msgspec.MsgspecError as error:
            raise HookError(f"dead letter {number} holds no event: {error}; prune it") from None
        if not isinstance(emitted, records.EmittedEvent):
            raise HookError(f"dead letter {number} holds no event; prune it")
        key = emitted.fields.get("delivery", {}).get("key", dead.seq)
        again = msgspec.structs.replace(emitted, fields={**emitted.fields, "delivery": {"key": key}})
        hook = dead.what.removeprefix(HOOK_PREFIX)
        put = NewRecord(retry_subject_of(hook), records.encode(again), f"redo:{number}", ttl=records.EVENT_TTL)
        with suppress(Duplicate):  # it was on its way already
            await self._engine.append(put)
        await self._engine.purge(record.subject)

    async def prune(self, number: int) -> None:
        """Throw it away. Raises HookError when there is none of this number."""
        record, _ = await self._one(number)
        await self._engine.purge(record.subject)

    async def _one(self, number: int) -> tuple[Record, records.DeadLetterRecord]:
        for record in await self._engine.read(records.DEAD_SUBJECTS, after=number - 1, limit=1):
            dead = records.decode(record.data)
            if (
                record.seq == number
                and isinstance(dead, records.DeadLetterRecord)
                and dead.what.startswith(HOOK_PREFIX)
            ):
                return record, dead
        raise HookError(f"there is no dead letter {number}; hermes-gateway hooks dead-letters list shows what there is")

    async def _all(self, hook: str) -> AsyncIterator[tuple[Record, records.DeadLetterRecord]]:
        pattern, after = dead_letter_subject_of(hook) if hook else records.DEAD_SUBJECTS, 0
        while page := await self._engine.read(pattern, after, PAGE):
            for record in page:
                dead = records.decode(record.data)
                if isinstance(dead, records.DeadLetterRecord) and dead.what.startswith(HOOK_PREFIX):
                    yield record, dead
            after = page[-1].seq


def _dead_letter_from(record: Record, dead: records.DeadLetterRecord) -> DeadLetter:
    try:
        emitted = records.decode(dead.data)
    except msgspec.MsgspecError:
        emitted = None
    name, fields = (emitted.name, emitted.fields) if isinstance(emitted, records.EmittedEvent) else ("", {})
    return DeadLetter(
        number=record.seq,
        hook=dead.what.removeprefix(HOOK_PREFIX),
        event=name,
        key=fields.get("delivery", {}).get("key", dead.seq),
        at=record.ts,
        attempts=dead.attempts,
        reason=dead.reason,
        fields=fields,
    )
