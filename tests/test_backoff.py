"""Pauses between tries: they double, they end, and they never fail themselves."""

from gateway.backoff import Attempts, Backoff


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 3.0)
    assert [backoff.pause_after(failures) for failures in (0, 1, 2, 3, 4, 5)] == [0.0, 0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_thing_that_fails_for_weeks_has_the_longest_pause() -> None:
    assert Backoff(0.05, 30.0).pause_after(100_000) == 30.0


def test_chance_keeps_pauses_within_its_bounds() -> None:
    pauses = {Backoff(1.0, 60.0, 0.8, 1.2).pause_after(3) for _ in range(50)}
    assert len(pauses) > 1
    assert all(3.2 <= pause <= 4.8 for pause in pauses)


def test_what_works_counts_anew() -> None:
    attempts = Attempts(Backoff(1.0, 60.0))
    assert [attempts.pause(), attempts.pause()] == [1.0, 2.0]
    attempts.reset()
    assert attempts.pause() == 1.0


def test_what_worked_long_enough_before_it_failed_had_recovered() -> None:
    attempts = Attempts(Backoff(1.0, 60.0), steady=10.0)
    assert [attempts.pause(lived=3.0), attempts.pause(lived=9.0), attempts.pause(lived=11.0)] == [1.0, 2.0, 1.0]
