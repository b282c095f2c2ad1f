"""The proofs behind `./x prove`: each says what it proves, its table fits a terminal, and CI runs its short form."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proof_table import WIDTH, Row, Trial, as_line, as_page, try_whole, widths_of
from tests.prove import names, proof

ROOT = Path(__file__).parent.parent


def prove(*args: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "tests/prove.py", *args]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_alone_it_lists_them() -> None:
    done = prove()
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == names()
    assert all(len(line) <= WIDTH for line in done.stdout.splitlines())


def test_a_name_that_is_none_is_refused() -> None:
    assert "siege" in prove("seige").stderr


@pytest.mark.parametrize("name", names())
def test_a_table_fits_a_terminal(name: str) -> None:
    columns = proof(name).COLUMNS
    row = Row(("", *["99999"] * (len(columns) - 1)))
    assert len(as_line(columns, widths_of(columns, [row], proof(name).WIDEST))) <= WIDTH


def test_ci_runs_the_short_form_of_all_of_them() -> None:
    assert "stage ./x prove all --short\n" in (ROOT / ".ci" / "run").read_text()


def test_a_page_says_what_broke() -> None:
    page = as_page("x", "About it.", ("what", "times"), [Row(("a", "3"), ("a: one is lost",))], "commit 1")
    assert "| what | times |\n| --- | --- |\n| a | 3 |\n" in page
    assert page.endswith("Broken promises:\n\n- a: one is lost\n")


def test_a_proof_that_breaks_off_keeps_its_rows_and_says_by_what_and_where(tmp_path: Path) -> None:
    def prove(_trial: Trial) -> Iterator[Row]:
        yield Row(("all is well", "yes"))
        raise ExceptionGroup("in a task", [KeyError("leader")])

    well, broken = try_whole("siege", ("what", "came"), prove, Trial(tmp_path))
    assert well.cells == ("all is well", "yes")
    assert broken.cells == ("siege broke off", "")
    assert broken.faults[0] == "siege broke off: KeyError: 'leader'"
