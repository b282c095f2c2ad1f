"""Sessions: conversations under their keys, folded from the journal.

What only some need is imported from its module: `verbs`, `removal`, `export`, `search`.
"""

from gateway.sessions.cache import Sessions
from gateway.sessions.keys import DEFAULT_RULES, KeyRules, new_session_id, platform_of, session_key
from gateway.sessions.policy import ResetPolicy, due
from gateway.sessions.session import OpenTurn, Session, apply, fold
from gateway.sessions.verbs import Turnover, turnover

__all__ = [
    "DEFAULT_RULES",
    "KeyRules",
    "OpenTurn",
    "ResetPolicy",
    "Session",
    "Sessions",
    "Turnover",
    "apply",
    "due",
    "fold",
    "new_session_id",
    "platform_of",
    "session_key",
    "turnover",
]
