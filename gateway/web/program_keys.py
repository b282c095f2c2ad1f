"""API keys of programs: made and revoked at the terminal, kept as marks, compared in constant time.

A key is 256 random bits. Its rights are in the record, never in a request. A revoked key is refused from the next
request on.
"""

import hashlib
import re
import secrets
import time

import anyio

from gateway.engine.interface import Engine
from gateway.errors import AccessError, Conflict
from gateway.messages.authors import HOOK
from gateway.messages.roles import KeyRole
from gateway.records import records, subjects
from gateway.records.follower import LastRecord
from gateway.records.records import ProgramKey

PREFIX = "hgw_"
KEY_BYTES = 32
MOST_KEYS = 1000
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


class ProgramKeys:
    """The API keys. Load `last` before you look up a key."""

    def __init__(self, engine: Engine) -> None:
        self.last = LastRecord(engine, subjects.KEYS_SUBJECT, records.ProgramKeyState(), self._note_change)
        self._lock = anyio.Lock()
        self._changed = anyio.Event()

    @property
    def keys(self) -> tuple[ProgramKey, ...]:
        return self.last.value.keys

    def _note_change(self, _before: records.ProgramKeyState, _now: records.ProgramKeyState) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def find(self, key: str) -> ProgramKey | None:
        """Return the record of a key; None if it is unknown. A known and an unknown key take the same time."""
        mark = mark_of(key)
        found = [one for one in self.keys if secrets.compare_digest(one.mark, mark)]
        return found[0] if found else None

    def find_speaker(self, user_id: str) -> ProgramKey | None:
        """Return the key by which this person of the platform `api` speaks, if it exists and has an agent."""
        name = user_id.partition(":")[0]
        return next((one for one in self.keys if one.name == name and one.agent), None)

    async def wait_revoked(self, key: ProgramKey) -> None:
        """Wait until this key is revoked."""
        while key in self.keys:
            await self._changed.wait()

    async def create(self, name: str, role: KeyRole, agent: str = "") -> str:
        """Make a key of this name, and return it; it is not stored, so it cannot be shown again.

        Raises:
            AccessError: the name is taken or invalid, or there are too many keys.
        """
        if role == "desk" and agent:
            raise AccessError("a desk's key speaks to no agent: leave --agent out")
        if not NAME.fullmatch(name) or (agent and f"{name}:" == HOOK):
            raise AccessError(f"{name!r} is not a valid key name\nit takes small letters, digits, - and _, at most 60")
        key = PREFIX + secrets.token_urlsafe(KEY_BYTES)
        async with self._lock:
            if any(one.name == name for one in self.keys):
                raise AccessError(f"there is a key {name} already\nhermes-gateway keys revoke {name}")
            if len(self.keys) >= MOST_KEYS:
                raise AccessError(f"there are {MOST_KEYS} keys already\nhermes-gateway keys revoke NAME")
            await self._keep((*self.keys, ProgramKey(name, mark_of(key), role, time.time(), agent)))
        return key

    async def revoke(self, name: str) -> ProgramKey:
        """Revoke a key: it authorizes no further request.

        Raises:
            AccessError: the key was not found.
        """
        async with self._lock:
            gone = next((one for one in self.keys if one.name == name), None)
            if gone is None:
                raise AccessError(f"API key {name!r} not found\nto list them: hermes-gateway keys list")
            await self._keep(tuple(one for one in self.keys if one is not gone))
        return gone

    async def _keep(self, keys: tuple[ProgramKey, ...]) -> None:
        try:
            await self.last.replace(records.ProgramKeyState(keys=keys, at=time.time()))
        except Conflict:
            raise AccessError("another change of the keys came at the same moment; try again") from None


def mark_of(key: str) -> str:
    """Return the mark by which a key is stored. A key is long and random, so one pass of a plain hash is enough."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
