"""Sessions: conversations under their keys, folded from the journal.

What only some need is imported from its module: `transitions`, `removal`, `export`, `search`, `retention`.
"""

from gateway.sessions.keys import KeyRules, make_session_id, platform_of, session_key_of
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import OpenTurn, Session, apply_record, fold_record
from gateway.sessions.transitions import ResetPolicy, get_reset_reason

__all__ = [
    "KeyRules",
    "OpenTurn",
    "ResetPolicy",
    "Session",
    "SessionRepository",
    "apply_record",
    "fold_record",
    "get_reset_reason",
    "make_session_id",
    "platform_of",
    "session_key_of",
]
