"""Durations and sizes: what people write, and back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.yaml_source.units import format_count, format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("250ms", 0.25),
        ("0", 0),
        ("2.5", 2.5),
        ("1w", 604800),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-5s", "5 parsecs", "5s3", "1:30", "1e3", "٣s", "9" * 200, "inf", "5m\n5"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64kB", 64_000),
        ("64KB", 64_000),
        ("64KiB", 65_536),
        ("64K", 65_536),
        ("10", 10),
        ("10B", 10),
        ("1.5 G", 1_610_612_736),
    ],
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "kB", "-5kB", "5 iB", "5XB", "five", "1e9", "5kB\n"])
def test_what_is_no_size_is_none(text: str) -> None:
    assert parse_size(text) is None


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**12))
def test_a_duration_reads_back_as_it_was_written(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**14) | st.integers(0, 4096).map(lambda n: n * 1024))
def test_a_size_reads_back_as_it_was_written(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("number", "words", "text"),
    [
        (1, ("file",), "1 file"),
        (0, ("file",), "0 files"),
        (2000, ("file",), "2,000 files"),
        (1, ("entry", "entries"), "1 entry"),
        (3, ("entry", "entries"), "3 entries"),
    ],
)
def test_what_is_counted_is_one_or_several(number: int, words: tuple[str, ...], text: str) -> None:
    assert format_count(number, *words) == text
