"""Sessions: conversations under their keys, folded from the journal.

What only some need is imported from its module: `transitions`, `removal`, `export`, `search`, `retention`.
"""

from gateway.sessions.keys import platform_of, session_key_of
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import OpenTurn, Session, apply_record
from gateway.sessions.transitions import get_reset_reason

__all__ = [
    "OpenTurn",
    "Session",
    "SessionRepository",
    "apply_record",
    "get_reset_reason",
    "platform_of",
    "session_key_of",
]
