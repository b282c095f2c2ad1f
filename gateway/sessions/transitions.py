"""Changes of a session, as pure functions: from its state they make the record of the change.

Inside a lane that record goes into the chain with the end of the turn. The new state names the session that ended
(`Session.replaced_id`) and the one that started: the facts of the events.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta, tzinfo
from typing import Literal

import msgspec

from gateway.config.settings import SessionSettings
from gateway.errors import SessionError
from gateway.messages.authors import find_author
from gateway.messages.message import Message
from gateway.messages.pieces import MessagePiece
from gateway.messages.transcript import Entry
from gateway.records import records
from gateway.sessions.keys import make_session_id
from gateway.sessions.session import Session

TITLE_LENGTH = 120
QUOTES: Literal["quotes"] = "quotes"  # the setting that shows a person the transcription of their voice messages
SPOKEN: Literal["spoken"] = "spoken"  # the setting that also reads answers aloud


def begin_session(
    session: Session,
    now: float,
    reason: str = "first",
    *,
    message: Message | None = None,
    keep: Iterable[str] = (),
) -> records.SessionOpened:
    """Start a new session under the key; of the old one's settings only those in `keep` continue."""
    settings = {name: session.settings[name] for name in keep if name in session.settings}
    return records.SessionOpened(
        session_id=make_session_id(now),
        session_key=session.key,
        reason=reason,
        previous=session.session_id,
        platform=message.address.platform if message else session.platform,
        user_id=message.user_id if message else session.user_id,
        carried=records.InitialState(settings=settings) if settings else None,
    )


def resume_session(session: Session, old: Session) -> records.SessionOpened:
    """Resume an earlier session under its own id; one of another key must be branched instead."""
    if old.session_id == session.session_id:
        raise SessionError(f"session {old.session_id} is the current one")
    if old.key != session.key:
        raise SessionError(f"session {old.session_id} belongs to {old.key}: branch it to go on here")
    return open_from(session, old, old.session_id, "resumed")


def branch_session(session: Session, source: Session, now: float, title: str = "") -> records.SessionOpened:
    """Start a session with a copy of another (or of the same): later turns belong to the copy alone."""
    copy = open_from(session, source, make_session_id(now), "branch")
    assert copy.carried is not None
    named = title or (f"{source.title} (branch)" if source.title else "")
    if named:
        copy.carried.settings["title"] = named
    return copy


def undo_turns(session: Session, turns: int = 1) -> records.TurnsUndone:
    """Undo the last turns."""
    if turns < 1:
        raise SessionError("undo takes a number of turns, 1 or more")
    if not session.turns:
        raise SessionError("there is nothing to undo in this session")
    return records.TurnsUndone(turns=min(turns, len(session.turns)))


def find_last_request(session: Session, author: str = "") -> Entry:
    """Return this author's message of the last turn: a retry sends it again, after an `undo_turns` of that turn.

    The words of another author are not repeated: said by a person, they would get the person's role.
    """
    if session.turns:
        if others := {*map(find_author, session.speakers[-1])} - {author}:
            named = ", ".join(sorted(others)) or "a person"
            raise SessionError(f"the last message here is of {named}, and no retry makes it yours: write it yourself")
        for entry in session.entries[-session.turns[-1] :]:
            if entry.role == "user":
                return entry
    raise SessionError("there is no message to try again in this session")


def find_last_pieces(session: Session) -> tuple[MessagePiece, ...]:
    """Return the pieces of that message."""
    return session.pieces[-1] if session.pieces else ()


def change_title(text: str) -> records.SettingChanged:
    """Set the session's title, on one line; an empty one removes it."""
    return records.SettingChanged(name="title", value=" ".join(text.split())[:TITLE_LENGTH] or None)


def change_model(name: str) -> records.SettingChanged:
    """Set the session's own model; `default` or nothing returns to the configured one."""
    return records.SettingChanged(name="model", value=name if name not in ("", "default") else None)


def change_setting(name: Literal["quotes", "spoken"], *, is_on: bool) -> records.SettingChanged:
    """Switch one of the settings that are on or off."""
    return records.SettingChanged(name=name, value=is_on or None)


def open_from(session: Session, source: Session, session_id: str, reason: str) -> records.SessionOpened:
    """Start a session under the key of one with the contents of another."""
    return records.SessionOpened(
        session_id=session_id,
        session_key=session.key,
        reason=reason,
        previous=session.session_id,
        platform=session.platform or source.platform,
        user_id=session.user_id or source.user_id,
        address=session.address,
        origin=source.session_id,
        carried=msgspec.convert(source, records.InitialState, from_attributes=True),
    )


def get_reset_reason(
    session: Session, settings: SessionSettings, now: float, zone: tzinfo | None = None, *, ahead: float = 0.0
) -> Literal["idle", "daily"] | None:
    """Return why a message that comes now starts a new session, or None. An open turn is never cut.

    The day starts by the clock of the zone; None is the host's. `ahead` is the lead of `now` over the journal's clock,
    which measures the silence.
    """
    if settings.reset == "none" or not session.session_id or session.turn is not None:
        return None
    silent = (now - ahead) - (session.last_active - session.ahead)
    if settings.reset in ("idle", "both") and silent >= settings.idle:
        return "idle"
    here = datetime.fromtimestamp(now, zone).astimezone(zone)
    boundary = here.replace(hour=settings.daily_at, minute=0, second=0, microsecond=0)
    if boundary > here:
        boundary -= timedelta(days=1)
    return "daily" if settings.reset in ("daily", "both") and silent > now - boundary.timestamp() else None
