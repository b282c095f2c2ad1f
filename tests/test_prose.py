"""The list of turns finds what it is for, and no file has more of them than before."""

from pathlib import Path

import pytest

from tests.prose import (
    TURNS,
    Turn,
    count_all,
    count_turns,
    find_faults,
    list_blocks,
    list_strings,
    read_ceilings,
)


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.sin)
def test_a_turn_is_seen_in_its_sin_and_not_in_plain_words(turn: Turn) -> None:
    assert (turn.count(turn.sin), turn.count(f"It is so. {turn.sin}"), turn.count(turn.better)) == (1, 1, 0)


def test_a_page_is_read_by_paragraphs_items_and_cells_without_its_code() -> None:
    page = "# Head\n\nOne\ntwo.\n\n- three\n- four\n\n```python\nfive\n```\n\n| six | seven |\n"
    assert [block.split() for block in list_blocks(page) if block.split()] == [
        ["Head"], ["One", "two."], ["three"], ["four"], ["six"], ["seven"],
    ]  # fmt: skip


def test_of_code_the_sentences_are_read_and_each_once() -> None:
    source = '"""A module of ours."""\nKEY = "max_size"\nsay(f"you are {name}, not {other}")\n'
    assert list(list_strings(source)) == ["A module of ours.", "you are `, not `"]


def test_a_file_above_its_ceiling_fails_and_so_does_one_below_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("What it says is `What`.\n\nNobody knows it. Likewise.\n")
    assert count_turns(page) == 3
    faults = list(find_faults({"a": 1, "b": 3, "c": 2}, {"a": 2, "b": 1, "c": 2, "new": 1}))
    assert [fault.partition(":")[0] for fault in faults] == ["a", "b", "new"]


def test_no_file_has_more_of_these_turns_than_before() -> None:
    assert list(find_faults(read_ceilings(), count_all())) == []
