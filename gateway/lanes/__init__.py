"""Lanes: between the journal and a turn. Order within a session, parallel across, each turn committed once."""

from gateway.lanes.lanes import Lanes, Standing, message_id
from gateway.lanes.surroundings import LaneSettings, nobody_interrupts, plain_words_interrupt, same_person_goes_on
from gateway.lanes.turn import HOUR, LaneTurn, Outcome, Status, Work, partial_entries

__all__ = [
    "HOUR",
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
    "plain_words_interrupt",
    "same_person_goes_on",
]
