"""The journal's contract: an append-only log with compare-and-set, durable consumers, leases, and live messages.

Order and ownership come from compare-and-set on the log, never from delivery and never from a lock. A subject is
a name of segments joined by dots. In a pattern `*` stands for exactly one segment, and `>` as the last segment for
one or more; nothing else is special. Nothing above this interface may know which engine it stands on.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Put:
    """One record to append. `expect` is the sequence that must now be the subject's last (0: none yet)."""

    subject: str
    data: bytes
    msg_id: str | None = None
    expect: int | None = None
    ttl: float | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One record as it stands in the journal. `ts` is the wall clock at its append."""

    seq: int
    subject: str
    data: bytes
    ts: float


@dataclass(frozen=True, slots=True)
class Spec:
    """A durable consumer: shared by name, it delivers what matches any pattern until each is acknowledged."""

    name: str
    patterns: tuple[str, ...]
    ack_wait: float = 30.0
    max_inflight: int = 1000
    new_only: bool = False


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the journal takes appends, and in words why not."""

    ok: bool
    detail: str
    records: int = 0
    size: int = 0


class Delivery(Protocol):
    """One record handed to a consumer, at least once."""

    @property
    def record(self) -> Record: ...

    @property
    def attempt(self) -> int:
        """1 at the first delivery; counted by the engine, so that a crash counts too."""
        ...

    async def ack(self) -> None: ...

    async def nak(self, delay: float = 0) -> None: ...

    async def progress(self) -> None:
        """Still at work: the acknowledgement wait starts again."""
        ...


class Consumer(Protocol):
    async def fetch(self, n: int, wait: float) -> list[Delivery]:
        """At most n deliveries, as soon as there is one; an empty list after `wait` seconds."""
        ...


class Lease(Protocol):
    @property
    def token(self) -> int:
        """Grows with every new holder: a fence."""
        ...

    async def renew(self) -> bool: ...

    async def release(self) -> None: ...


class Engine(Protocol):
    async def append(self, *puts: Put) -> list[int]:
        """Append all or nothing, and return a sequence for each.

        Raises:
            Conflict: a subject's last sequence was not the expected one.
            Duplicate: a message id is in the journal already.
            EngineError: nothing was written, for instance because the disk is full.
        """
        ...

    async def last(self, subject: str) -> Record | None: ...

    async def read(self, pattern: str, after: int = 0, limit: int = 100) -> list[Record]: ...

    async def purge(self, pattern: str, upto: int | None = None) -> int: ...

    async def consumer(self, spec: Spec) -> Consumer:
        """The durable consumer of this name, made where there is none, its patterns brought up to date."""
        ...

    async def forget_consumer(self, name: str) -> None:
        """The consumer and its backlog are gone."""
        ...

    async def depth(self, name: str) -> int:
        """How much a consumer has before it: pending and in flight."""
        ...

    async def lease(self, key: str, holder: str, ttl: float = 10.0) -> Lease | None: ...

    async def holder(self, key: str) -> str | None: ...

    async def publish(self, subject: str, data: bytes) -> None:
        """Live only, to whoever listens at this moment."""
        ...

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        """Publish, and wait for the one answer of whoever serves the subject; TimeoutError when nobody does."""
        ...

    def serve(self, subject: str, answer: "Answer") -> "Unserve":
        """Answer requests on a subject until the returned function is called."""
        ...

    def tail(self, *patterns: str) -> AsyncIterator[Record]:
        """Live records, appended (with their sequence) and published (sequence 0); a slow reader loses the oldest."""
        ...

    async def health(self) -> Health: ...

    async def close(self) -> None: ...


class Answer(Protocol):
    async def __call__(self, data: bytes) -> bytes: ...


class Unserve(Protocol):
    def __call__(self) -> None: ...


def matches(pattern: str, subject: str) -> bool:
    """Whether the subject falls under the pattern; the one definition that every engine must agree with."""
    wanted, given = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(given) <= len(wanted):
            return False
        given = given[: len(wanted)]
    return len(wanted) == len(given) and all(w in ("*", g) for w, g in zip(wanted, given, strict=True))
