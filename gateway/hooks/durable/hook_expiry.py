"""The time at which a gateway last had each durable hook; after a long absence, the journal forgets a hook.

The journal holds these times for all gateways that share it. Each gateway writes the times of its hooks once a day, and
at once when a folder is added or removed. So a hook that this gateway lacks counts as gone only if no gateway has it.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import TypeAlias

import anyio
import msgspec

from gateway.engine.interface import Engine, NewRecord, append_in_parts
from gateway.errors import Conflict, EngineError
from gateway.hooks.durable.dead_letters import list_durable
from gateway.records import records, subjects
from gateway.records.stores import make_value_put, read_store

OWNER = "gateway/durable hooks"  # no hook has such a name: a folder's name contains no slash
FORGET_AFTER = records.EVENT_TTL  # seconds; no event of such a hook is left by then

KEPT_FOR = 2 * FORGET_AFTER  # if no start checks until then, a hook counts from the next check

ListTokens: TypeAlias = Callable[[], Iterable[str]]


class HookExpiry(msgspec.Struct, eq=False):
    """The record of the hooks of this gateway, written every `pause` seconds at least. Tokens name the hooks."""

    _engine: Engine
    _pause: float = records.DAY
    _list_here: ListTokens | None = None

    async def follow(self, list_here: ListTokens) -> AsyncIterator[str]:
        """Start to record these hooks; yield the hooks to forget, each hook to one gateway only.

        The absence of a hook that was never recorded counts from now.
        """
        self._list_here = list_here
        now, known, here = self._engine.clock.latest(), await self._read(), {*list_here()}
        hooks = await list_durable(self._engine)
        ages = {token: now - known[token][1] for token in hooks if token in known}
        await self._write(
            [token for token in hooks if token not in ages or (token in here and ages[token] >= self._pause)]
        )
        for token, age in ages.items():
            if token not in here and age >= FORGET_AFTER and await self._claim(token, *known[token]):
                yield token
                await self._engine.purge(subjects.hook_store_subject_of(OWNER, token))

    async def run(self) -> None:
        """Record the hooks of this gateway, every `pause` seconds, until cancelled."""
        while True:
            await anyio.sleep(self._pause)
            with suppress(EngineError):  # the next round comes long before a hook counts as gone
                here = {*self._list_here()} if self._list_here else set[str]()
                await self._write([token for token in await list_durable(self._engine) if token in here])

    async def note(self, token: str) -> None:
        """Record that a hook is here now, or was until now; a start records all hooks together."""
        if self._list_here:
            await self._write([token])

    async def _write(self, tokens: Iterable[str]) -> None:
        now = self._engine.clock.latest()
        await append_in_parts(self._engine, (_make_put(token, now) for token in tokens))

    async def _read(self) -> dict[str, tuple[int, float]]:
        found = read_store(self._engine, OWNER)
        return {kept.key: (record.seq, float(kept.value)) async for record, kept in found}

    async def _claim(self, token: str, seq: int, at: float) -> bool:
        """Claim a hook in order to forget it; return False if another gateway has or forgets the hook."""
        try:
            await self._engine.append(_make_put(token, at, expect=seq))
        except Conflict:
            return False
        return True


def _make_put(token: str, at: float, expect: int | None = None) -> NewRecord:
    return make_value_put(OWNER, token, at, expect=expect, ttl=KEPT_FOR)
