"""Lanes: between the journal and a turn. Order within a session, parallel across, each turn committed once."""

from gateway.lanes.context import LaneSettings, interrupt_on_text
from gateway.lanes.lanes import Lanes, message_id_of
from gateway.lanes.turn import ANSWER_WAIT, LaneResult, LaneTurn, RunTurn

__all__ = [
    "ANSWER_WAIT",
    "LaneResult",
    "LaneSettings",
    "LaneTurn",
    "Lanes",
    "RunTurn",
    "interrupt_on_text",
    "message_id_of",
]
