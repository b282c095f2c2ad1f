"""What is shown to a person fits the terminal: no line is longer than it is wide."""

import re
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.cli.test_terminal_safety import show_on_terminal

pytestmark = pytest.mark.process

STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(
    "words",
    [("--help",), ("hooks", "--help"), ("send", "--help"), ("logs", "--help"), ("security", "audit")],
    ids=" ".join,
)
def test_no_line_is_longer_than_the_terminal_is_wide(tmp_path: Path, words: tuple[str, ...]) -> None:
    home = tmp_path / "a-home-in-a-folder-with-a-name-that-leaves-less-room-than-others" / "home"
    home.mkdir(parents=True)
    home.chmod(0o777)
    with GatewayProcess(home) as gateway:
        lines = STYLE.sub("", show_on_terminal(gateway, *words)).replace("\r", "").splitlines()
    assert len(lines) > 4, lines
    assert [line for line in lines if len(line) > 80 and " " in line.strip()] == []
