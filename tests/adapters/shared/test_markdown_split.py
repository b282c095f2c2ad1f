"""Pieces of Markdown: within the limit, nothing lost, no fence, link or character cut."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.shared.markdown_split import count_utf16_units, split_markdown

CODE = "\n".join(f"line {number} of some code" for number in range(60))


def test_what_fits_is_one_piece_as_it_is() -> None:
    assert split_markdown("hello\nworld", 100) == ["hello\nworld"]
    assert split_markdown(" \n ", 100) == []


@pytest.mark.parametrize("mark", ["```", "~~~", "`````"])
def test_a_fence_that_is_cut_is_a_fence_in_each_piece(mark: str) -> None:
    found = split_markdown(f"Before.\n\n{mark}python\n{CODE}\n{mark}\n\nAfter.", 200)
    assert len(found) > 5
    for piece in found:
        marks = [line for line in piece.split("\n") if line.startswith(mark)]
        assert len(marks) % 2 == 0
        assert len(piece) <= 200
    assert all(piece.startswith(f"{mark}python\n") for piece in found[2:-1])
    shown = [line for piece in found for line in piece.split("\n") if line.startswith("line ")]
    assert shown == CODE.split("\n")


def test_a_fence_is_not_begun_at_the_end_of_a_piece() -> None:
    for length in range(70, 100):
        for piece in split_markdown(f"{'x' * length}\n```\n{CODE}\n```", 100):
            assert not re.search(r"```\n```", piece)


@pytest.mark.parametrize(
    "link", ["[a long text of a link](https://example.org/a/b/c)", "https://example.org/" + "a" * 40]
)
def test_a_link_stays_whole(link: str) -> None:
    for before in range(30, 100):
        found = split_markdown(f"{'word ' * (before // 5)}{'y' * (before % 5)} {link} and more words {'z ' * 50}", 110)
        assert sum(link in piece for piece in found) == 1


@pytest.mark.parametrize("sign", ["👩‍👩‍👧‍👦", "🏳️‍🌈", "e\u0301", "👍🏽"])
def test_a_character_of_several_signs_stays_whole(sign: str) -> None:
    for piece in split_markdown("x" + sign * 40, 31):
        assert piece.removeprefix("x") == sign * piece.count(sign)
        assert count_utf16_units(piece) <= 31


MARKS = ("a", "b ", "\n", "\n\n", "```", "\n```py\n", "\n```\n", "😀", "[x](https://y.z)", "~~~", "w" * 60)


@given(st.lists(st.sampled_from(MARKS)).map("".join))
def test_whatever_the_text_each_piece_fits_and_nothing_is_lost(text: str) -> None:
    found = split_markdown(text, 150)
    assert all(count_utf16_units(piece) <= 150 for piece in found)
    for sign in ("a", "😀", "https://y.z"):
        assert "".join(found).count(sign) >= text.count(sign)
