"""What is due in a session, read from two chains: its own (who holds which turn, what is answered, what is asked), and
the inbound one after `upto`. Order comes from here and never from delivery.
"""

import logging
import uuid
from dataclasses import dataclass

from gateway import records
from gateway.lanes.context import LaneContext, lease_key_of
from gateway.lanes.turn_claim import TurnJob
from gateway.messages import Message
from gateway.sessions import OpenTurn, Session

log = logging.getLogger(__name__)

LONGEST_WAIT = 600.0
PAGE = 100


@dataclass(frozen=True, slots=True)
class LaneWait:
    """Nothing can be done for so many seconds, unless the bell rings."""

    seconds: float


async def find_next_job(around: LaneContext, key: str) -> tuple[Session, TurnJob | LaneWait | None]:
    """The session, and what its lane is to do; None: nothing is left.

    Raises:
        Conflict: the chain went on in this moment; look again.
    """
    session = await around.sessions.open(key)
    turn = session.turn
    if turn is None:
        return session, await _find_waiting(around, session)
    if turn.by and turn.by != around.node and await around.engine.holder(lease_key_of(turn.by)):
        return session, LaneWait(around.settings.lease / 2)
    if turn.is_waiting:
        if (left := turn.until - around.clock()) > 0:
            return session, LaneWait(min(left, LONGEST_WAIT))
        expired = [records.QuestionAnswered(turn_id=turn.turn_id, name=name, answer=None) for name in turn.questions]
        session = await around.sessions.append(session, *expired)
        assert session.turn
        turn = session.turn
    return await _find_open(around, session, turn)


async def read_inbound(around: LaneContext, key: str, after: int, limit: int = PAGE) -> list[tuple[int, Message]]:
    """The messages of a session behind a sequence."""
    found = await around.engine.read(records.session_subject_of("in", key), after, limit)
    decoded = ((one.seq, records.decode(one.data)) for one in found)
    return [(seq, kept.message) for seq, kept in decoded if isinstance(kept, records.InboundMessage)]


async def _find_waiting(around: LaneContext, session: Session) -> TurnJob | None:
    """The first messages that wait, as many as one turn may answer."""
    found = await read_inbound(around, session.key, session.upto, around.settings.folded)
    if not found:
        return None
    last = 1
    while last < len(found) and around.settings.joins(found[last - 1][1], found[last][1]):
        last += 1
    return _make_job(uuid.uuid4().hex, 1, found[:last])


async def _find_open(around: LaneContext, session: Session, turn: OpenTurn) -> tuple[Session, TurnJob | None]:
    """The open turn once more, with the very messages that it was begun with."""
    found = [one for one in await read_inbound(around, session.key, session.upto) if one[0] <= turn.on]
    if found:
        return session, _make_job(turn.turn_id, turn.attempt + 1, found, on=turn.on, resumed=True)
    log.warning("the messages of turn %s of %s are gone from the journal; it is closed", turn.turn_id, session.key)
    gone = records.TurnEnded(upto=turn.on, turn_id=turn.turn_id, status="expired")
    session = await around.sessions.append(session, gone)
    return session, await _find_waiting(around, session)


def _make_job(
    turn_id: str, attempt: int, found: list[tuple[int, Message]], on: int = 0, *, resumed: bool = False
) -> TurnJob:
    seqs, messages = zip(*found, strict=True)
    return TurnJob(turn_id, on or seqs[-1], attempt, messages, seqs, resumed)
