"""The recordings of terminals: drawn from their present sessions, shown on a page, and of nothing from elsewhere."""

import re
from html import unescape
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.diagrams import FOLDER, find_old
from tests.docs_blocks import ROOT
from tests.recordings import KEYS, KIND, record, split_session
from tests.terminal_picture import NO_BREAK

RECORDINGS = sorted(path.stem for path in FOLDER.glob(f"*{KIND}"))
MOST_BYTES = 60_000


def test_each_picture_is_of_its_session() -> None:
    assert list(find_old(FOLDER, KIND)) == [], "./x pictures records them"


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_shows_all_that_was_typed_and_waited_for_and_is_on_a_page(name: str) -> None:
    texts = [path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")]
    shown = [words for text in texts for words in re.findall(rf"!\[([^]]*)\]\(pictures/{name}\.svg\)", text)]
    assert [len(words.split()) > 10 for words in shown] == [True]
    path = FOLDER / f"{name}.svg"
    rows = unescape(re.sub(r"<[^>]+>", "", path.read_text("utf-8"))).replace(NO_BREAK, " ")
    session = split_session((FOLDER / f"{name}{KIND}").read_text("utf-8"))
    wanted = [line for command, lines in session for line in (f"$ {command}", *lines) if line != KEYS[1]]
    assert [line for line in wanted if line.removeprefix(KEYS[0]) not in rows] == []
    assert path.stat().st_size < MOST_BYTES
    assert not re.findall(r"<script|<image|@import|href=|url\(", path.read_text("utf-8"))


@pytest.mark.process
def test_a_session_is_typed_and_what_it_shows_is_kept(tmp_path: Path) -> None:
    session = "$ echo who; read name; echo hello $name\nwho\n> Ann\nhello Ann\n$ echo bye\nbye\n"
    with GatewayProcess(tmp_path / "home") as gateway:
        assert list(record(session, gateway)) == [
            ("echo who; read name; echo hello $name", "who\nAnn\nhello Ann"),
            ("echo bye", "bye"),
        ]
