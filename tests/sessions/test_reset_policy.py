"""When a session ends by itself."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from gateway.config.settings import SessionSettings
from gateway.engine.journal_clock import DAY
from gateway.sessions.session import OpenTurn, Session
from gateway.sessions.transitions import get_reset_reason
from tests.engine.conftest import JUMPS


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def last_spoken(text: str) -> Session:
    return Session("k", session_id="s", last_active=at(text))


@pytest.mark.parametrize(
    ("mode", "last", "now", "reason"),
    [
        ("none", "2026-01-01T00:00", "2026-06-01T00:00", None),
        ("idle", "2026-01-01T12:00", "2026-01-02T11:59", None),
        ("idle", "2026-01-01T12:00", "2026-01-02T12:00", "idle"),
        ("daily", "2026-01-01T03:59", "2026-01-01T04:00", "daily"),
        ("daily", "2026-01-01T04:00", "2026-01-02T03:59", None),
        ("daily", "2026-01-01T23:00", "2026-01-02T04:01", "daily"),
        ("both", "2026-01-01T03:00", "2026-01-01T05:00", "daily"),
        ("both", "2026-01-01T12:00", "2026-01-09T12:00", "idle"),
    ],
)
def test_the_next_message_begins_a_new_session_when_it_is_time(
    mode: str, last: str, now: str, reason: str | None
) -> None:
    assert get_reset_reason(last_spoken(last), SessionSettings(reset=mode), at(now), UTC) == reason  # type: ignore[arg-type]


@pytest.mark.parametrize("jump", JUMPS)
def test_a_clock_that_was_set_resets_nothing_and_what_is_silent_is_reset_all_the_same(jump: float) -> None:
    settings, last = SessionSettings(reset="both"), at("2026-01-01T12:00")
    spoken = last_spoken("2026-01-01T12:00")
    assert get_reset_reason(spoken, settings, last + 60 + jump, UTC, ahead=jump) is None
    before = replace(spoken, last_active=last + jump, ahead=jump)
    assert get_reset_reason(before, settings, last + 60, UTC) is None, "it was set, and is right again"
    assert get_reset_reason(before, settings, last + 2 * DAY, UTC) == "idle"
    assert get_reset_reason(spoken, settings, last + 2 * DAY + jump, UTC, ahead=jump) == "idle"


def test_the_day_begins_by_the_clock_of_the_place() -> None:
    daily, tokyo = SessionSettings(reset="daily"), ZoneInfo("Asia/Tokyo")
    assert get_reset_reason(last_spoken("2026-01-01T18:00"), daily, at("2026-01-01T18:59"), tokyo) is None
    assert get_reset_reason(last_spoken("2026-01-01T18:00"), daily, at("2026-01-01T19:00"), tokyo) == "daily"


def test_a_turn_that_is_open_is_never_cut_and_what_never_began_cannot_end() -> None:
    idle, now = SessionSettings(reset="idle"), at("2027-01-01T00:00")
    waiting = replace(last_spoken("2026-01-01T00:00"), turn=OpenTurn("t", 1, 1, 1))
    assert get_reset_reason(waiting, idle, now) is None
    assert get_reset_reason(Session("k"), idle, now) is None
