"""Lanes: between the journal and a turn. Order within a session, parallel across, each turn committed once."""

from gateway.lanes.context import LaneSettings, interrupt_on_text, is_same_person_continuing, never_interrupt
from gateway.lanes.lanes import Lanes, QueuePosition, message_id_of
from gateway.lanes.turn import ANSWER_WAIT, LaneResult, LaneTurn, RunTurn, build_partial_entries

__all__ = [
    "ANSWER_WAIT",
    "LaneResult",
    "LaneSettings",
    "LaneTurn",
    "Lanes",
    "QueuePosition",
    "RunTurn",
    "build_partial_entries",
    "interrupt_on_text",
    "is_same_person_continuing",
    "message_id_of",
    "never_interrupt",
]
