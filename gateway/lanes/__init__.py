"""Lanes: between the journal and a turn. Order within a session, parallel across, each turn committed once."""

from gateway.lanes.audio import TRANSCRIPTION, AudioListener, AudioWords
from gateway.lanes.context import DAMAGED, LaneSettings, interrupt_on_text
from gateway.lanes.edits import is_edit_of_open
from gateway.lanes.heard import make_heard_put
from gateway.lanes.lanes import Lanes, list_open_sessions, message_id_of, open_turns_consumer
from gateway.lanes.turn import (
    ANSWER_WAIT,
    LaneResult,
    LaneTurn,
    NoteClaim,
    RecordStep,
    RunTurn,
    TurnStart,
    count_parts,
    has_own_calls,
    is_last_answer,
    reply_id_of,
)
from gateway.lanes.turn_claim import write_decisions

__all__ = [
    "ANSWER_WAIT",
    "DAMAGED",
    "TRANSCRIPTION",
    "AudioListener",
    "AudioWords",
    "LaneResult",
    "LaneSettings",
    "LaneTurn",
    "Lanes",
    "NoteClaim",
    "RecordStep",
    "RunTurn",
    "TurnStart",
    "count_parts",
    "has_own_calls",
    "interrupt_on_text",
    "is_edit_of_open",
    "is_last_answer",
    "list_open_sessions",
    "make_heard_put",
    "message_id_of",
    "open_turns_consumer",
    "reply_id_of",
    "write_decisions",
]
