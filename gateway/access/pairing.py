"""Strangers who ask to be let in: each gets a code, which they show to whoever runs the gateway.

A code is given in direct messages alone, is good for an hour and for one approval, and lets one person speak in direct
messages on one network: no group, no standing. Of a stranger nothing but this one small record is written, so many
people at most, each once in a while. Codes themselves are not kept, only what tells them again; people are kept by id.

All of it is one record, changed by compare-and-set: the last one counts.
"""

import secrets
import time
from collections import deque
from collections.abc import Callable

import anyio

from gateway import records
from gateway.engine import Engine, NewRecord
from gateway.errors import AccessError, Conflict
from gateway.messages import Message
from gateway.records import PairingUser

CODE_LIFETIME = 3600.0
CODE_PAUSE = 600.0  # before the same person gets another code
MOST_ASKING = 20  # on one network
MOST_WRONG = 5  # codes in an hour
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # nothing that looks like something else
CODE_LENGTH = 8
LONGEST_NAME = 60


class Pairings:
    """The people who were let in, and those who have asked. `load` before anybody is looked up."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._clock = clock
        self._lock = anyio.Lock()
        self._kept = records.PairingState()
        self._seq = 0
        self._wrong: deque[float] = deque(maxlen=MOST_WRONG)

    @property
    def people(self) -> tuple[PairingUser, ...]:
        return self._kept.people

    @property
    def asking(self) -> tuple[PairingUser, ...]:
        """Those whose code is still good."""
        return tuple(one for one in self._kept.asking if one.at + CODE_LIFETIME > self._clock())

    def has(self, platform: str, user_id: str) -> bool:
        return any((one.platform, one.user_id) == (platform, user_id) for one in self._kept.people)

    async def load(self) -> None:
        seq, kept = await records.read_last(self._engine, records.ACCESS_SUBJECT, records.PairingState)
        if kept:
            self._kept, self._seq = kept, seq

    async def invite(self, message: Message) -> str:
        """A code for the sender; empty: this is no direct message, or it is too soon, or too many ask."""
        if message.address.chat_type != "dm" or message.kind not in ("text", "command") or not message.user_id:
            return ""
        async with self._lock:
            platform, now = message.address.platform, self._clock()
            there = [one for one in self.asking if one.platform == platform]
            before = next((one for one in there if one.user_id == message.user_id), None)
            if (before and now - before.at < CODE_PAUSE) or (before is None and len(there) >= MOST_ASKING):
                return ""
            code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
            name = message.user_name[:LONGEST_NAME]
            guest = PairingUser(platform, message.user_id, name, message.address.chat_id, now, mark_of(code))
            try:
                await self._write(self.people, (*(one for one in self.asking if one is not before), guest))
            except AccessError:
                return ""  # their next message asks again
            return code

    async def approve(self, code: str) -> PairingUser:
        """Let in whoever was given this code.

        Raises:
            AccessError: nobody was, or not within the hour; or too many wrong ones were tried.
        """
        async with self._lock:
            await self.load()
            now = self._clock()
            if len(self._wrong) == MOST_WRONG and now - self._wrong[0] < CODE_LIFETIME:
                left = (self._wrong[0] + CODE_LIFETIME - now) / 60
                raise AccessError(f"too many wrong codes were tried; the next try is possible in {left:.0f} min")
            mark = mark_of(code.strip().upper())
            guest = next((one for one in self.asking if secrets.compare_digest(one.mark, mark)), None)
            if guest is None:
                self._wrong.append(now)
                raise AccessError(
                    "nobody has this code, or it is more than an hour old: let them write to the bot again"
                )
            self._wrong.clear()
            known = PairingUser(guest.platform, guest.user_id, guest.user_name, guest.chat_id, now)
            others = (one for one in self.people if (one.platform, one.user_id) != (guest.platform, guest.user_id))
            await self._write((*others, known), tuple(one for one in self.asking if one is not guest))
            return known

    async def revoke(self, platform: str, user_id: str) -> PairingUser:
        """Let somebody in no more.

        Raises:
            AccessError: nobody of this id was let in by a code.
        """
        async with self._lock:
            await self.load()
            gone = next((one for one in self.people if (one.platform, one.user_id) == (platform, user_id)), None)
            if gone is None:
                raise AccessError(
                    f"nobody with the id {user_id!r} was let in by a code on {platform}; "
                    "whom the configuration names is removed there"
                )
            await self._write(tuple(one for one in self.people if one is not gone), self.asking)
            return gone

    async def _write(self, people: tuple[PairingUser, ...], asking: tuple[PairingUser, ...]) -> None:
        kept = records.PairingState(people=people, asking=asking, at=self._clock())
        try:
            self._seq = (
                await self._engine.append(NewRecord(records.ACCESS_SUBJECT, records.encode(kept), expect=self._seq))
            )[0]
        except Conflict:
            await self.load()
            raise AccessError("somebody else changed this at the same moment; try again") from None
        self._kept = kept
        await self._engine.purge(records.ACCESS_SUBJECT, self._seq - 1)


def mark_of(code: str) -> str:
    """What is kept of a code."""
    return records.token_of(f"pairing:{code}")
