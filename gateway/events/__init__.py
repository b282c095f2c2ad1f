"""Events, the decisions about them, and the catalogue of all events of the gateway.

This face is loaded in the process of every hook: it brings `event.py` and nothing else.
"""

from gateway.events.event import (
    DECISIONS,
    OUTCOMES,
    YES_WORDS,
    AskedCall,
    Bags,
    Decorated,
    Deny,
    End,
    Event,
    HookMark,
    OnError,
    Outcome,
    Pause,
    Question,
    Retry,
    find_marked,
    is_yes,
    on,
    outcome_from,
    outcome_to_dict,
)

__all__ = [
    "DECISIONS",
    "OUTCOMES",
    "YES_WORDS",
    "AskedCall",
    "Bags",
    "Decorated",
    "Deny",
    "End",
    "Event",
    "HookMark",
    "OnError",
    "Outcome",
    "Pause",
    "Question",
    "Retry",
    "find_marked",
    "is_yes",
    "on",
    "outcome_from",
    "outcome_to_dict",
]
