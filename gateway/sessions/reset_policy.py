"""When a session ends by itself: after a silence, or once a day. Decided at the next message, never by a timer."""

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Literal, TypeAlias

from gateway.sessions.session import Session

ResetMode: TypeAlias = Literal["none", "idle", "daily", "both"]


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """`idle` minutes without a word, or the first message after the hour `at_hour` of a day; `none`: never."""

    mode: ResetMode = "none"
    idle_minutes: int = 1440
    at_hour: int = 4
    zone: tzinfo | None = None  # None: the machine's


def get_reset_reason(session: Session, policy: ResetPolicy, now: float) -> Literal["idle", "daily"] | None:
    """Why a message that comes now begins a new session, if it does. A turn that is open is never cut."""
    if policy.mode == "none" or not session.session_id or session.turn is not None:
        return None
    if policy.mode in ("idle", "both") and now - session.last_active >= policy.idle_minutes * 60:
        return "idle"
    if policy.mode in ("daily", "both") and session.last_active < _find_last_boundary(policy, now):
        return "daily"
    return None


def _find_last_boundary(policy: ResetPolicy, now: float) -> float:
    here = datetime.fromtimestamp(now, policy.zone).astimezone(policy.zone)
    boundary = here.replace(hour=policy.at_hour, minute=0, second=0, microsecond=0)
    if boundary > here:
        boundary -= timedelta(days=1)
    return boundary.timestamp()
