"""Each benchmark runs to its end in its short form, and prints every row: unused code rots."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.config.home import get_process_environment
from tests import performance
from tests.browser.screen import find_chromium

pytestmark = [pytest.mark.thorough, pytest.mark.process]

ROOT = Path(__file__).parent.parent
LIMIT = 600.0  # seconds; alone on a quiet machine it is half a minute
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d.,]*(?![\w.])")
# How many rows each has; the short form has all those of the whole one, but for what wants peers installed.
ROWS = {
    "checksums": 3,
    "cluster": 7,
    "code_lines": 3,
    "desk": 7,
    "docs": 2,
    "first_request": 2,
    "folders": 16,
    "hooks": 23,
    "idle": 11,
    "journal": 4,
    "large_journal": 11,
    "owed_events": 3,
    "pages": 4,
    "plugins": 2,
    "rooms": 15,
    "sandbox": 6,
    "sessions": 7,
    "shell": 5,
    "spine": 4,
    "start": 7,
    "trips": 3,
    "turn": 9,
    "web": 5,
    "whole": 2,
    "workers": 21,
    "year": 2,
}
OTHER_ARGUMENTS = {"code_lines": ["bench"]}


def list_benches() -> list[str]:
    """All that can be run; the rest helps them."""
    files = sorted((ROOT / "bench").glob("*.py"))
    return [path.stem for path in files if 'if __name__ == "__main__":' in path.read_text("utf-8")]


def test_of_each_bench_is_known_how_many_rows_it_has() -> None:
    assert list_benches() == sorted(ROWS)


def test_the_page_has_a_place_for_each_table() -> None:
    places = re.findall(r"<!-- bench: (\w+) -->\n(?:.*\n)*?<!-- end: \1 -->\n", performance.PAGE.read_text("utf-8"))
    assert sorted(places) == sorted(performance.SECTIONS)


@pytest.mark.timeout(LIMIT + 60)
@pytest.mark.parametrize("name", list_benches())
def test_a_bench_prints_every_row(name: str) -> None:
    if name == "rooms" and find_chromium() is None:
        pytest.skip("the rooms of the page are opened in a real browser: apt install chromium")
    command = [sys.executable, "-m", f"bench.{name}", *OTHER_ARGUMENTS.get(name, ["--short"])]
    done = subprocess.run(
        command, cwd=ROOT, env=get_process_environment(), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if NUMBER.search(line)]
    assert len(rows) == ROWS[name], done.stdout
