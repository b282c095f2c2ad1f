"""Forgetting: the words of a session leave the journal, and what was answered stays marked as answered.

First one append says, at the end of the chain, that all before is forgotten, and carries what is to stay; only then the
records before it are purged. So a crash in between loses nothing, and what it left over goes with the next `sweep`,
which every reader of the chain may do again: it is the same every time.
"""

from gateway import records
from gateway.engine.interface import Engine
from gateway.errors import Conflict, SessionError
from gateway.sessions.cache import Sessions
from gateway.sessions.keys import new_session_id
from gateway.sessions.session import Session
from gateway.sessions.verbs import carried


async def forget(engine: Engine, sessions: Sessions, key: str, session_id: str = "") -> bool:
    """Forget one session of a key, or all of them; False when there is no such session.

    Of a whole key everything goes: messages that still wait are not answered, a turn that runs is stopped.

    Raises:
        SessionError: one session is to go while a turn is under way in the key's conversation.
    """
    while True:
        before = await sessions.open(key)
        past = await sessions.past(key)
        newest = await engine.last(records.subject("in", key))
        if (session_id and session_id not in past) or (before.seq == 0 and newest is None):
            return False
        if session_id and before.turn is not None:
            raise SessionError(f"a turn is under way in {key}: stop it first, then forget {session_id}")
        upto = before.upto if session_id or newest is None else max(before.upto, newest.seq)
        stay = [old for name, old in past.items() if session_id and name != session_id]
        remains = _remains(before, stay, session_id, sessions.now())
        try:
            await sessions.append(before, records.Done(upto=upto, status="forgotten"), *remains)
        except Conflict:
            continue
        (end,) = await engine.read(records.subject("turn", key), before.seq, 1)
        await sweep(engine, records.conv(key), end.seq, upto)
        return True


async def sweep(engine: Engine, conv: str, seq: int, upto: int) -> None:
    """Purge what the end at `seq` in a chain said to forget: the chain before it, messages up to `upto`, replies."""
    await engine.purge(f"gw.turn.{conv}", seq - 1)
    await engine.purge(f"gw.sum.{conv}", seq - 1)
    await engine.purge(f"gw.in.{conv}", upto)
    await engine.purge(f"gw.bell.{conv}", seq)
    await engine.purge(f"gw.out.*.*.{conv}", seq)
    await engine.purge(f"gw.dead.turns.{conv}", seq)


def _remains(before: Session, stay: list[Session], removed: str, now: float) -> list[records.Opened]:
    """The sessions that stay, written anew; the current one last, or a new one where it was the one that goes."""
    kept = [
        records.Opened(
            session_id=old.session_id,
            session_key=before.key,
            reason="kept",
            platform=old.platform,
            user_id=old.user_id,
            origin=old.session_id,
            carried=carried(old),
            at=old.last_active,
        )
        for old in stay
    ]
    if kept and removed == before.session_id:
        kept.append(
            records.Opened(
                session_id=new_session_id(now),
                session_key=before.key,
                reason="forgotten",
                platform=before.platform,
                user_id=before.user_id,
            )
        )
    return kept
