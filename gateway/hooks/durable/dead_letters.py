"""The names of hooks in the journal: consumers, subjects, and dead letters.

A dead letter is an event that could not be delivered to a durable hook; the journal keeps it until a person retries or
removes it.

A folder may have any name that a person writes; a segment of a subject may not. A name that is not a valid segment is
shortened to its valid characters, with a hash of the whole name, so that two folders never share a segment.
"""

import hashlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeAlias

import msgspec

from gateway.engine.interface import Engine, NewRecord, Record
from gateway.engine.subjects import SEGMENT
from gateway.errors import Duplicate, HookError
from gateway.hooks.stats import HookInfo
from gateway.records import records, subjects

LETTER_PREFIX = "hook:"
TOKEN_PREFIX = "hook-"  # noqa: S105 - starts the names of hooks' consumers, no secret

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def subject_token_of(folder: str) -> str:
    """Return one segment for the folder: `activity-log` -> `hook-activity-log`."""
    if _PLAIN_NAME.match(folder):
        return f"{TOKEN_PREFIX}{folder}"
    legible = re.sub(r"[^A-Za-z0-9_-]+", "_", folder)[:40]
    return f"{TOKEN_PREFIX}{legible}-{hashlib.sha256(folder.encode()).hexdigest()[:8]}"


async def list_durable(engine: Engine) -> list[str]:
    """List the tokens of the hooks with a consumer in the journal."""
    return [token for token in await engine.consumers() if token.startswith(TOKEN_PREFIX)]


def dead_letter_subject_of(store_name: str, seq: int | None = None) -> str:
    """Return the subject of the hook's dead letter for this event; without `seq`, the pattern for all events."""
    return subjects.dead_letter_subject_of(subject_token_of(store_name), seq)


def can_be_durable(pattern: str) -> bool:
    """Return True if the pattern has only whole segments, as the journal's filters require."""
    return all(part == "*" or re.fullmatch(SEGMENT, part) for part in pattern.split(":"))


def build_filters(token: str, patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the subjects from which this hook's consumer reads."""
    filters = [
        of(pattern) for pattern in patterns for of in (subjects.event_subject_of, subjects.owed_event_pattern_of)
    ]
    return (*dict.fromkeys(filters), subjects.retry_subject_of(token))


def make_dead_letter_put(token: str, hook: str, record: Record, reason: str, attempts: int) -> NewRecord:
    """Make the append of a dead letter; the journal refuses a second append of the same dead letter."""
    dead = records.DeadLetterRecord(
        what=f"{LETTER_PREFIX}{hook}",
        reason=reason,
        attempts=attempts,
        subject=record.subject,
        seq=record.seq,
        data=record.data,
    )
    subject = subjects.dead_letter_subject_of(token, record.seq)
    return NewRecord(subject, records.encode(dead), msg_id=f"dead:{token}:{record.seq}")


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter; `number` identifies it for show, retry and prune, and `key` identifies the delivery."""

    number: int
    hook: str
    event: str
    key: int
    at: float
    attempts: int
    reason: str
    fields: dict[str, object] = {}


FindHook: TypeAlias = Callable[[str], Awaitable[HookInfo]]
"""Describes the present hook of this name. Raises HookError if it does not exist."""


class DeadLetters(msgspec.Struct, eq=False):
    """The dead letters in the journal, with methods to list, retry and remove them."""

    _engine: Engine
    _find_hook: FindHook

    async def list(self, hook: str = "") -> Sequence[DeadLetter]:
        """List the dead letters of current and former hooks with this name, or of all hooks; the oldest first."""
        what = f"{LETTER_PREFIX}{hook}"
        return [_dead_letter_from(record, dead) async for record, dead in self._all() if not hook or dead.what == what]

    async def list_owed_to(self, store_name: str) -> Sequence[DeadLetter]:
        """List the dead letters of the single hook with this store."""
        found = self._all(dead_letter_subject_of(store_name))
        return [_dead_letter_from(record, dead) async for record, dead in found]

    async def count(self) -> Counter[str]:
        """Count the dead letters by the tokens of their hooks."""
        return Counter([subjects.hook_token_of_subject(record.subject) async for record, _ in self._all()])

    async def retry(self, number: int) -> None:
        """Deliver this dead letter again, with all retries. Raises HookError if the number is unknown."""
        record, dead = await self._one(number)
        try:
            emitted = records.decode(dead.data)
        except msgspec.MsgspecError as error:
            raise HookError(f"dead letter {number} holds no event: {error}; prune it") from None
        if not isinstance(emitted, records.EmittedEvent):
            raise HookError(f"dead letter {number} holds no event; prune it")
        key = emitted.fields.get("delivery", {}).get("key", dead.seq)
        again = msgspec.structs.replace(emitted, fields={**emitted.fields, "delivery": {"key": key}})
        subject = subjects.retry_subject_of(subjects.hook_token_of_subject(record.subject))
        put = NewRecord(subject, records.encode(again), f"redo:{number}")
        with suppress(Duplicate):  # its retry is already pending
            await self._engine.append(put)
        await self._engine.purge(record.subject)

    async def prune(self, number: int) -> None:
        """Remove this dead letter. Raises HookError if the number is unknown."""
        record, _ = await self._one(number)
        await self._engine.purge(record.subject)

    async def retry_all(self, hook: str, number: int | None = None) -> int:
        """Retry this dead letter of the hook, or all its dead letters; return their number.

        Dead letters of an earlier hook with the same name do not go to the current hook.

        Raises:
            HookError: the hook or the dead letter is unknown, or the dead letter holds no event.
        """
        found = await self.list_owed_to((await self._find_hook(hook)).stored_as)
        return await self._settle(self.retry, hook, found, number)

    async def prune_all(self, hook: str, number: int | None = None) -> int:
        """Remove this dead letter, or all dead letters, of the hook, which may be gone; return their number.

        Raises:
            HookError: the hook or the dead letter is unknown.
        """
        if not (found := await self.list(hook)):
            await self._find_hook(hook)
        return await self._settle(self.prune, hook, found, number)

    async def _settle(
        self, act: Callable[[int], Awaitable[None]], hook: str, found: Sequence[DeadLetter], number: int | None
    ) -> int:
        numbers = [letter.number for letter in found if number in (None, letter.number)]
        if number is not None and not numbers:
            raise HookError(f"{hook} has no dead letter {number}\nhermes-gateway hooks dead-letters list {hook}")
        for one in numbers:
            await act(one)
        return len(numbers)

    async def _one(self, number: int) -> tuple[Record, records.DeadLetterRecord]:
        async for record, dead in self._all(after=number - 1):
            if record.seq == number:
                return record, dead
            break
        raise HookError(f"dead letter {number} not found\nto list them: hermes-gateway hooks dead-letters list")

    async def _all(
        self, pattern: str = subjects.DEAD_SUBJECTS, after: int = 0
    ) -> AsyncIterator[tuple[Record, records.DeadLetterRecord]]:
        async for record, dead in records.read_all(self._engine, pattern, records.DeadLetterRecord, after):
            if dead.what.startswith(LETTER_PREFIX):
                yield record, dead


def _dead_letter_from(record: Record, dead: records.DeadLetterRecord) -> DeadLetter:
    try:
        emitted = records.decode(dead.data)
    except msgspec.MsgspecError:
        emitted = None
    name, fields = (emitted.name, emitted.fields) if isinstance(emitted, records.EmittedEvent) else ("", {})
    return DeadLetter(
        number=record.seq,
        hook=dead.what.removeprefix(LETTER_PREFIX),
        event=name,
        key=fields.get("delivery", {}).get("key", dead.seq),
        at=record.ts,
        attempts=dead.attempts,
        reason=dead.reason,
        fields=fields,
    )
