"""Dead letters: events that a durable hook could not be told of, kept until they are tried again or thrown away."""

from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec

from gateway import records
from gateway.engine.interface import Engine, NewRecord, Record
from gateway.errors import Duplicate, HookError
from gateway.hooks.folders.subjects import dead_letter_subject_of, retry_subject_of

PAGE = 200
HOOK_PREFIX = "hook:"


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
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def list(self, hook: str = "") -> list[DeadLetter]:
        """The oldest first; of one hook, or of all."""
        return [_dead_letter_from(record, dead) async for record, dead in self._all(hook)]

    async def show(self, number: int) -> DeadLetter:
        """Raises HookError when there is none of this number."""
        record, dead = await self._one(number)
        return _dead_letter_from(record, dead)

    async def retry(self, number: int) -> None:
        """It is delivered again, with all repetitions. Raises HookError when there is none of this number."""
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
        """It is thrown away. Raises HookError when there is none of this number."""
        record, _ = await self._one(number)
        await self._engine.purge(record.subject)

    async def prune_all(self, hook: str) -> int:
        """All of one hook are thrown away; how many they were."""
        return await self._engine.purge(dead_letter_subject_of(hook))

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
