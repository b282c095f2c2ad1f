"""The record of authorized people, requests and invitations: changed by compare-and-set, the last one counts."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from msgspec.structs import replace

from gateway.engine.interface import Engine
from gateway.errors import AccessError, Conflict
from gateway.records import records, subjects
from gateway.records.follower import LastRecord
from gateway.records.records import PairingInvitation, PairingUser

CODE_LIFETIME = 3600.0
MOST_WRONG = 5  # codes in an hour, of one person
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no characters that look alike
MOST_TRYING = 200  # people whose wrong codes are counted; the latest ones stay


class PairingJournal:
    """Reads and writes the record. Expired parts are hidden, and removed with the next change."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.last = LastRecord(engine, subjects.ACCESS_SUBJECT, records.PairingState())
        self._engine = engine
        self._lock = anyio.Lock()

    @property
    def kept(self) -> records.PairingState:
        return self.last.value

    @property
    def asking(self) -> tuple[PairingUser, ...]:
        """The requests whose code is still valid."""
        return tuple(one for one in self.kept.asking if one.at + CODE_LIFETIME > self.clock())

    @property
    def invitations(self) -> tuple[PairingInvitation, ...]:
        """The invitations that are still valid, by the journal's clock."""
        now = self._engine.clock.latest_possible()
        return tuple(one for one in self.kept.invitations if one.until > now)

    def find_end(self, lifetime: float) -> float:
        """Return the end of a period that starts now, by the same clock."""
        return self._engine.clock.latest_possible() + lifetime

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[records.PairingState]:
        """Load the record; no other task here changes it inside the block."""
        async with self._lock:
            await self.last.load()
            yield self.kept

    async def write(self, **changes: Any) -> None:
        """Write changes, inside `changing`.

        Raises:
            AccessError: another process was faster.
        """
        current = replace(self.kept, asking=self.asking, invitations=self.invitations, at=self.clock())
        try:
            await self.last.replace(replace(current, **changes))
        except Conflict:
            raise AccessError("someone else made a change at the same moment; try again") from None

    def find_wrong(self, by: str) -> Mapping[str, tuple[float, ...]]:
        """Return the times of wrong codes in the last hour, by person.

        Raises:
            AccessError: this person tried too many.
        """
        now = self.clock()
        wrong = {who: recent for who, tries in self.kept.wrong.items() if (recent := _keep_recent(tries, now))}
        if len(tried := wrong.get(by, ())) >= MOST_WRONG:
            left = (tried[0] + CODE_LIFETIME - now) / 60
            raise AccessError(f"too many wrong codes were tried; the next try is possible in {left:.0f} min")
        return wrong

    async def write_wrong(self, by: str, wrong: Mapping[str, tuple[float, ...]]) -> None:
        """Count one more wrong code."""
        others = {who: tries for who, tries in wrong.items() if who != by}
        counted = [*others.items(), (by, (*wrong.get(by, ()), self.clock()))]
        await self.write(wrong=dict(counted[-MOST_TRYING:]))

    async def let_in(
        self, guest: PairingUser, wrong: Mapping[str, tuple[float, ...]], *gone: PairingUser | PairingInvitation
    ) -> None:
        """Authorize a person; their request or invitation is `gone` in the same append."""
        who = (guest.served_as, guest.user_id)
        await self.write(
            people=(*(one for one in self.kept.people if (one.served_as, one.user_id) != who), guest),
            asking=tuple(one for one in self.asking if one not in gone),
            invitations=tuple(one for one in self.invitations if one not in gone),
            wrong=dict(wrong),
        )


def mark_of(code: str) -> str:
    """Return the hash of a code."""
    return subjects.token_of(f"pairing:{code}")


def _keep_recent(tries: tuple[float, ...], now: float) -> tuple[float, ...]:
    """Return the tries of the last hour; one in the future came from a wrong clock."""
    return tuple(at for at in tries if 0 <= now - at < CODE_LIFETIME)
