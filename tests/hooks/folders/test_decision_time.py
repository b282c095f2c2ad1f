"""Hooks that share the time for their decisions have it together, event by event."""

import math

import pytest

from gateway.events import Event
from gateway.hooks.folders.services import DecisionTime


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def decisions(clock: list[float]) -> DecisionTime:
    return DecisionTime(lambda: clock[0])


def test_what_one_took_the_next_does_not_have(decisions: DecisionTime, clock: list[float]) -> None:
    event = Event("command:title", {"id": "one"})
    with decisions.limit(event, 5.0) as left:
        assert left == 5.0
        clock[0] += 3.0
    with decisions.limit(event, 5.0) as left:
        assert left == 2.0
        clock[0] += 4.0
    with decisions.limit(event, 5.0) as left:
        assert left == -2.0


def test_another_event_and_who_shares_nothing_lose_nothing(decisions: DecisionTime, clock: list[float]) -> None:
    with decisions.limit(Event("command:title", {"id": "one"}), 5.0):
        clock[0] += 3.0
    with decisions.limit(Event("command:title", {"id": "two"}), 5.0) as left:
        assert left == 5.0
    with decisions.limit(Event("command:title", {"id": "one"}), None) as left:
        assert left == math.inf
