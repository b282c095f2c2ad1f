"""Lanes: between the journal and a turn. Order within a session, parallel across, each turn committed once."""

from gateway.lanes.lanes import Lanes, Standing, message_id
from gateway.lanes.surroundings import LaneSettings, nobody_interrupts, same_person_goes_on
from gateway.lanes.turn import LaneTurn, Outcome, Status, Work, partial_entries

__all__ = [
    "LaneSettings",
    "LaneTurn",
    "Lanes",
    "Outcome",
    "Standing",
    "Status",
    "Work",
    "message_id",
    "nobody_interrupts",
    "partial_entries",
    "same_person_goes_on",
]
