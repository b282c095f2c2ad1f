"""When a session ends by itself."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from gateway.config.settings import SessionSettings
from gateway.sessions import OpenTurn, Session, get_reset_reason


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


def test_the_day_begins_by_the_clock_of_the_place() -> None:
    daily, tokyo = SessionSettings(reset="daily"), ZoneInfo("Asia/Tokyo")
    assert get_reset_reason(last_spoken("2026-01-01T18:00"), daily, at("2026-01-01T18:59"), tokyo) is None
    assert get_reset_reason(last_spoken("2026-01-01T18:00"), daily, at("2026-01-01T19:00"), tokyo) == "daily"


def test_a_turn_that_is_open_is_never_cut_and_what_never_began_cannot_end() -> None:
    idle, now = SessionSettings(reset="idle"), at("2027-01-01T00:00")
    waiting = replace(last_spoken("2026-01-01T00:00"), turn=OpenTurn("t", 1, 1, 1))
    assert get_reset_reason(waiting, idle, now) is None
    assert get_reset_reason(Session("k"), idle, now) is None
