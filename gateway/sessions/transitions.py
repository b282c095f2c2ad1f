"""Changes of a session, as pure functions: each function makes the record of a change from the session's state.

A lane appends this record to the chain with the end of the turn. The new state has the id of the session that ended
(`Session.replaced_id`) and of the session that started, as the events need them.
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
    session: Session, now: float, reason: str = "first", *, message: Message | None = None, keep: Iterable[str] = ()
) -> records.SessionOpened:
    """Start a new session under the key, with the old session's settings in `keep` and no others."""
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
    """Resume an earlier session of the same key, under its own id; to use a session of another key, branch it."""
    if old.session_id == session.session_id:
        raise SessionError(f"session {old.session_id} is the current one")
    if old.key != session.key:
        raise SessionError(f"session {old.session_id} belongs to {old.key}: branch it to go on here")
    return open_from(session, old, old.session_id, "resumed")


def branch_session(session: Session, source: Session, now: float, title: str = "") -> records.SessionOpened:
    """Start a session with a copy of `source`, which may be the same session: later turns belong only to the copy."""
    copy = open_from(session, source, make_session_id(now), "branch")
    assert copy.carried is not None
    named = title or (f"{source.title} (branch)" if source.title else "")
    if named:
        copy.carried.settings["title"] = named
    return copy


def undo_turns(session: Session, turns: int = 1) -> records.TurnsUndone:
    """Make the record that undoes the last `turns` turns."""
    if turns < 1:
        raise SessionError("undo takes a number of turns, 1 or more")
    if not session.turns:
        raise SessionError("this session has nothing to undo")
    return records.TurnsUndone(turns=min(turns, len(session.turns)))


def find_last_request(session: Session, author: str = "") -> Entry:
    """Return this author's message of the last turn: a retry undoes that turn and sends the message again.

    A message of another author raises SessionError: a retry would give its text the role of the person who retries.
    """
    if session.turns:
        if others := {*map(find_author, session.speakers[-1])} - {author}:
            named = ", ".join(sorted(others)) or "a person"
            raise SessionError(f"the last message here is of {named}, and no retry makes it yours: write it yourself")
        for entry in session.entries[-session.turns[-1] :]:
            if entry.role == "user":
                return entry
    raise SessionError("this session has no message to retry")


def find_last_pieces(session: Session) -> tuple[MessagePiece, ...]:
    """Return the pieces of the last turn's messages."""
    return session.pieces[-1] if session.pieces else ()


def change_title(text: str) -> records.SettingChanged:
    """Set the session's title, on one line; an empty text removes the title."""
    return records.SettingChanged(name="title", value=" ".join(text.split())[:TITLE_LENGTH] or None)


def change_model(name: str) -> records.SettingChanged:
    """Set the session's own model; `default` or "" returns to the configured model."""
    return records.SettingChanged(name="model", value=name if name not in ("", "default") else None)


def change_setting(name: Literal["quotes", "spoken"], *, is_on: bool) -> records.SettingChanged:
    """Switch the setting `quotes` or `spoken` on or off."""
    return records.SettingChanged(name=name, value=is_on or None)


def open_from(session: Session, source: Session, session_id: str, reason: str) -> records.SessionOpened:
    """Start a session under the key of `session`, with the contents of `source`."""
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

    The day starts by the clock of `zone`, or of the host's zone if `zone` is None. `ahead` is by how many seconds `now`
    is ahead of the journal's clock, which measures the silence.
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
