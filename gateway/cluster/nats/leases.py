"""Leases: each lease is the only message of its key, and the server removes the message when it expires."""

import asyncio
import base64
import json
import math
import time
from typing import Any

import msgspec

from gateway.backoff import Attempts, Backoff
from gateway.cluster.nats.connection import NO_MAJORITY, PATIENCE, Connection, ServerRefusal
from gateway.cluster.nats.names import Names
from gateway.cluster.nats.record_writer import WRONG_SEQUENCE
from gateway.cluster.nats.stored_messages import EXPECTED, LIFETIME
from gateway.cluster.nats.streams import read_message
from gateway.errors import EngineError

AGAIN = Backoff(0.02, 1.0)


class NatsLease(msgspec.Struct):
    """A lease; `seq` is the sequence of the message that last took or renewed the lease."""

    key: str
    holder: str
    token: int
    ttl: float
    seq: int
    until: float
    leases: "Leases"

    async def renew(self) -> bool:
        now = time.monotonic()
        if now >= self.until:
            return False
        seq = await self.leases.write(self, self.seq)
        if seq is None:
            return False
        self.seq, self.until = seq, now + self.ttl
        return True

    async def release(self) -> None:
        self.until = 0.0
        await self.leases.remove(self.seq)


class _StoredLease(msgspec.Struct, frozen=True):
    seq: int
    key: str
    holder: str


class Leases(msgspec.Struct, eq=False):
    """The leases of one journal."""

    _connection: Connection
    _names: Names

    async def take(self, key: str, holder: str, ttl: float) -> NatsLease | None:
        """Take a lease; None if another holder has the key.

        Raises:
            EngineError: the current lease can neither be read nor replaced, because too few servers are left, and one
                of them has an entry that it could not settle with the other servers.
        """
        attempts, end = Attempts(AGAIN), time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = await self._read(key)
            if found and found[1] != holder:
                return None
            now = time.monotonic()
            lease = NatsLease(key, holder, 0, ttl, 0, now + ttl, self)
            seq = await self.write(lease, found[0] if found else 0)
            if seq is not None:
                lease.seq = lease.token = seq
                return lease
            await asyncio.sleep(attempts.pause())
            self._connection.check_open()
        raise EngineError(NO_MAJORITY)

    async def read_holder(self, key: str) -> str | None:
        found = await self._read(key)
        return found[1] if found else None

    async def read_holders(self, beginning: str) -> dict[str, str]:
        found, after = dict[str, str](), 0
        while one := await self._get(seq=after + 1, next_by_subj=self._names.leases):
            after = one.seq
            if one.key.startswith(beginning):
                found[one.key] = one.holder
        return found

    async def _read(self, key: str) -> tuple[int, str] | None:
        found = await self._get(last_by_subj=self._names.lease(key))
        return (found.seq, found.holder) if found else None

    async def _get(self, **which: Any) -> "_StoredLease | None":
        message = await read_message(self._connection, self._names.keys, **which)
        if message is None:
            return None
        said = json.loads(base64.b64decode(message["data"]))
        return _StoredLease(int(message["seq"]), said["key"], said["holder"])

    async def write(self, lease: NatsLease, expected: int) -> int | None:
        """Write the lease and return its sequence; None if the key has changed."""
        data = json.dumps({"key": lease.key, "holder": lease.holder}).encode()
        headers = {EXPECTED: str(expected), LIFETIME: str(max(1, math.ceil(lease.ttl)))}
        subject = self._names.lease(lease.key)
        try:
            answer = await self._connection.insist(lambda: self._connection.ask_stored(subject, data, headers))
        except ServerRefusal as refusal:
            if refusal.number in WRONG_SEQUENCE:
                return None
            raise refusal.make_error("the NATS server takes no lease", self._names.keys) from refusal
        return int(answer["seq"])

    async def remove(self, seq: int) -> None:
        try:
            await self._connection.call(f"STREAM.MSG.DELETE.{self._names.keys}", seq=seq, no_erase=True)
        except ServerRefusal:
            return  # the lease has expired already
