"""The sessions: a bounded cache over their chains in the journal, and the only code that appends to a chain.

The journal alone is the truth. `open` reads on from the last known sequence, so a session is always as new as the
journal. An evicted session is folded again from its last summary. A session is a frozen value: after its eviction a
caller can still use it.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress

import msgspec

from gateway.engine.interface import Engine, NewRecord, SettledRecords
from gateway.errors import EngineError, EngineTooNew
from gateway.messages.pieces import MessageName
from gateway.records import records, subjects
from gateway.sessions.session import STATE_VERSION, Session, apply_record, delete_words

log = logging.getLogger(__name__)

PAGE = 500
CACHE_BUDGET = 16_000_000  # characters of transcripts in memory
CACHE_IDLE = 900.0
SUMMARY_EVERY = 200
SESSION_WEIGHT = 2000


class CachedSession(msgspec.Struct):
    """A session in memory, with its last use, and the number of records that its last summary covers."""

    session: Session
    summarised: int
    used: float


class SessionRepository(msgspec.Struct, eq=False):
    """The sessions by key. `ahead` returns by how many seconds the clock `now` is ahead of the journal's."""

    _engine: Engine
    now: Callable[[], float] = time.time
    ahead: Callable[[], float] = float
    budget: int = CACHE_BUDGET
    idle: float = CACHE_IDLE
    summary_every: int = SUMMARY_EVERY
    _held: OrderedDict[str, CachedSession] = msgspec.field(default_factory=OrderedDict)
    _weight: int = 0

    async def open(self, key: str, *, fresh: bool = False) -> Session:
        """Return the session of a key; a session without records has the sequence 0.

        Unless `fresh` is set, the newest records of other processes may be missing: then an append meets a Conflict,
        and the next `open` reads these records.
        """
        held = self._held.get(key)
        session, summarised = (held.session, held.summarised) if held else await self._from_summary(key)
        async for newer in self._states(session, fresh=fresh):
            session = newer
        if held and held.session is session and self._held.get(key) is held:  # no record was new
            held.used = self.now()
            self._held.move_to_end(key)
        else:
            await self._keep(session, summarised)
        return session

    def known(self) -> list[Session]:
        """Return the sessions in memory, as they were last read."""
        return [held.session for held in self._held.values()]

    async def append(self, session: Session, *kept: records.TurnRecord, extra: Sequence[NewRecord] = ()) -> Session:
        """Append records to the chain behind the known state, and the `extra` records in the same append.

        The end of a turn also sets the expiry of the records that it settles.

        Raises:
            Conflict: the chain has changed, and nothing was written.
        """
        kept = self._stamp(kept)
        ends = [one for one in kept if isinstance(one, records.TurnEnded)]
        settled = [part for end in ends for part in settle_turn(session.key, end.upto)]
        sequences = await self._engine.append(*make_chain_puts(session, kept), *extra, settled=settled)
        return await self._follow(session, kept, sequences)

    async def append_said(
        self, session: Session, said: NewRecord, *kept: records.TurnRecord, extra: Sequence[NewRecord] = ()
    ) -> Session:
        """Append a message, and then records like `append`: a claim among these records is for the new message.

        Raises:
            Conflict: the chain has changed, and nothing was written.
            Duplicate: the journal has the message, and nothing was written.
        """
        append, stamped = self._engine.append_numbered, self._stamp(kept)
        assert append, "only a journal of this process knows sequences ahead"
        first, *sequences = await append(
            lambda seq: [said, *make_chain_puts(session, put_claim_on(stamped, seq)), *extra]
        )
        return await self._follow(session, put_claim_on(stamped, first), sequences)

    def _stamp(self, kept: Iterable[records.TurnRecord]) -> tuple[records.TurnRecord, ...]:
        now, ahead = self.now(), self.ahead()
        return tuple(one if one.at else msgspec.structs.replace(one, at=now, ahead=ahead) for one in kept)

    async def _follow(self, session: Session, kept: Sequence[records.TurnRecord], sequences: Sequence[int]) -> Session:
        for one, seq in zip(kept, sequences, strict=False):
            session = apply_record(session, one, seq)
        held = self._held.get(session.key)
        await self._keep(session, held.summarised if held else 0)
        return session

    async def read_all(self, key: str) -> dict[str, Session]:
        """Return every session of the key by id, oldest first, each in its last state."""
        found: dict[str, Session] = {}
        deleted: tuple[MessageName, ...] = ()
        async for session in self._states(Session(key), fresh=True):
            deleted = session.deleted
            if not session.session_id:
                found.clear()  # all earlier sessions were forgotten
            else:
                found.pop(session.session_id, None)
                found[session.session_id] = session
        if not deleted:
            return found
        # A deleted message may be in a session that had ended before the deletion.
        return {
            name: msgspec.structs.replace(delete_words(one, deleted), deleted=deleted) for name, one in found.items()
        }

    async def _states(self, session: Session, *, fresh: bool) -> AsyncIterator[Session]:
        subject = subjects.session_subject_of("turn", session.key)
        while True:
            page = await self._engine.read(subject, session.seq, PAGE, fresh=fresh)
            for record in page:
                session = apply_record(session, records.decode(record.data), record.seq, record.ts)
                yield session
            if len(page) < PAGE:
                return

    async def _from_summary(self, key: str) -> tuple[Session, int]:
        record = await self._engine.last(subjects.session_subject_of("sum", key))
        if record is None:
            return Session(key), 0
        with suppress(msgspec.MsgspecError, EngineTooNew):
            kept = records.decode(record.data)
            if isinstance(kept, records.SessionSnapshot) and kept.shape == STATE_VERSION:
                session = msgspec.json.decode(kept.state, type=Session)
                return session, session.records
        log.info("the summary of session %s is of another version; its whole chain is read", key)
        return Session(key), 0

    async def _keep(self, session: Session, summarised: int) -> None:
        if session.records - summarised >= max(self.summary_every, len(session.entries) // 2):
            summarised = await self._summarise(session, summarised)
        self._remember(session, summarised)

    async def _summarise(self, session: Session, summarised: int) -> int:
        subject = subjects.session_subject_of("sum", session.key)
        summary = records.SessionSnapshot(
            upto=session.seq, shape=STATE_VERSION, state=msgspec.Raw(msgspec.json.encode(session)), at=self.now()
        )
        try:
            (seq,) = await self._engine.append(NewRecord(subject, records.encode(summary)))
            await self._engine.purge(subject, seq - 1)
        except EngineError as error:
            log.debug("no summary of session %s now: %s", session.key, error)
            return summarised
        return session.records

    def _remember(self, session: Session, summarised: int) -> None:
        now = self.now()
        held = self._held.pop(session.key, None)
        if held:
            self._weight -= held.session.weight
            if held.session.seq > session.seq:
                session, summarised = held.session, held.summarised
        self._held[session.key] = CachedSession(session, summarised, now)
        self._weight += session.weight
        while len(self._held) > 1:
            key, oldest = next(iter(self._held.items()))
            if self._weight + SESSION_WEIGHT * len(self._held) <= self.budget and now - oldest.used <= self.idle:
                return
            del self._held[key]
            self._weight -= oldest.session.weight


def make_chain_puts(session: Session, kept: Sequence[records.TurnRecord]) -> list[NewRecord]:
    """Make the records to append behind the known state; the `expect` of the first covers the whole append."""
    subject = subjects.session_subject_of("turn", session.key)
    fences = [session.seq, *[None] * len(kept)]
    return [NewRecord(subject, records.encode(one), expect=fence) for one, fence in zip(kept, fences, strict=False)]


def put_claim_on(kept: Sequence[records.TurnRecord], seq: int) -> list[records.TurnRecord]:
    """Return the records, with the sequence of the claimed message in their claim."""
    return [msgspec.structs.replace(one, on=seq) if isinstance(one, records.Claim) else one for one in kept]


def settle_turn(session_key: str, upto: int) -> tuple[SettledRecords, ...]:
    """Settle the messages up to `upto`, and all transcriptions and doorbells of the session."""
    settled: dict[subjects.SessionSubject, int] = {"in": upto, "audio": records.NEWEST, "bell": records.NEWEST}
    return tuple(
        SettledRecords(subjects.session_subject_of(kind, session_key), last, records.TRAFFIC_TTL)
        for kind, last in settled.items()
    )
