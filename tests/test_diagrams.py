"""The diagrams of the documentation: drawn from their present text, shown with words, and of nothing from elsewhere."""

import re
from pathlib import Path

import pytest

from tests.diagrams import FOLDER, as_file, find_old
from tests.docs_blocks import ROOT

DIAGRAMS = sorted(path.stem for path in FOLDER.glob("*.mmd"))
LONGEST_WIDTH = 1100  # pixels; in a page, what is wider has letters that are too small


def test_each_drawing_is_of_its_text() -> None:
    assert list(find_old(FOLDER)) == [], "./x pictures draws them"


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_shown_in_words_too_and_is_readable_by_day_and_night(name: str) -> None:
    texts = [path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")]
    shown = [words for text in texts for words in re.findall(rf"!\[([^]]*)\]\(pictures/{name}\.svg\)", text)]
    assert [len(words.split()) > 10 for words in shown] == [True]
    drawn = (FOLDER / f"{name}.svg").read_text("utf-8")
    assert "prefers-color-scheme:dark" in drawn
    assert not re.findall(r"<script|<foreignObject|@import|href=", drawn)
    assert float(re.findall(r'width="([\d.]+)"', drawn)[0]) < LONGEST_WIDTH


def test_a_drawing_of_another_text_is_old(tmp_path: Path) -> None:
    (tmp_path / "way.mmd").write_text("flowchart TB\n")
    assert list(find_old(tmp_path)) == ["way"]
    (tmp_path / "way.svg").write_text(as_file("flowchart TB\n", '<svg viewBox="0 0 1 1"></svg>'))
    assert list(find_old(tmp_path)) == []
    (tmp_path / "way.mmd").write_text("flowchart LR\n")
    assert list(find_old(tmp_path)) == ["way"]
