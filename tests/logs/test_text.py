"""Text of strangers cannot act: no control characters, no line breaks, no turned writing, and it has an end."""

import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.logs.text import to_one_line, to_text_block


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("plain", "plain"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("abc\u202edcba", "abc\\u202edcba"),
        ("a\u2028b", "a\\u2028b"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("日本 👩‍👩‍👧 é שלום", "日本 👩‍👩‍👧 é שלום"),
        ("❤️ 1️⃣ می‌خواهم क्‍ष", "❤️ 1️⃣ می‌خواهم क्‍ष"),
        ("a\u3164\u2800\u034f\u115f\u1160b", "a\\u3164\\u2800\\u034f\\u115f\\u1160b"),
        ("API\ufe0f\ufe01_KEY\U000e0101", "API\\ufe0f\\ufe01_KEY\\U000e0101"),
        ("read\u200c_\u200dfile", "read\\u200c_\\u200dfile"),
        ("a\U00013441\U0001d159\U0001d173b", "a\\U00013441\\U0001d159\\U0001d173b"),
    ],
)
@pytest.mark.row("T29")
def test_what_acts_is_escaped_and_what_is_read_stays(foreign: str, shown: str) -> None:
    assert to_one_line(foreign) == shown


VISIBLE_SIGNS = (
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"  # around numbers
)


@pytest.mark.row("T29")
def test_whatever_has_no_form_of_its_own_is_escaped() -> None:
    unseen = [
        sign
        for sign in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") and sign not in VISIBLE_SIGNS
    ]
    assert [sign for sign in unseen if to_one_line(sign) == sign] == []
    assert [sign for sign in unseen if to_text_block(sign) == sign] == ["\n", "\u200c", "\u200d"]


@pytest.mark.row("T29")
def test_a_long_text_is_cut_and_says_so() -> None:
    shown = to_one_line("x" * 15_000, limit=100)
    assert shown == "x" * 100 + "... (15,000 characters)"
    assert to_text_block("a\n" * 20 + "why", limit=10).endswith("\nwhy")


@settings(deadline=None)
@given(st.text())
def test_one_line_is_one_line_without_control_characters(text: str) -> None:
    shown = to_one_line(text)
    assert len(shown.splitlines()) <= 1
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cs", "Zl", "Zp"}
    shown.encode()


@settings(deadline=None)
@given(st.text())
def test_a_block_breaks_only_where_the_text_did(text: str) -> None:
    assert to_text_block(text).count("\n") == text.count("\n")
    assert len(to_text_block(text).splitlines()) <= text.count("\n") + 1
