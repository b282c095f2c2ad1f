"""The tests that a run leaves out, and its record of failures: tried on a suite of its own."""

import json
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SUITE = """
import pytest
@pytest.mark.parametrize("number", range(120))
def test_many(number):
    assert number != 7, "seven is too much"
@pytest.mark.thorough
def test_dear(): ...
"""
SETTINGS = "[pytest]\nmarkers =\n    thorough: left out\n    process: none\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_it.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "conftest.py").write_text("pytest_plugins = ['tests.whole_run']")
    return tmp_path


def run(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:hermes_gateway", *words, str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})
    return done.stdout


def test_of_many_parameters_a_fifth_of_those_beyond_the_twentieth_is_tried(folder: Path) -> None:
    left, whole = (run(folder, "--collect-only", *words) for words in (["-m", "not thorough"], []))
    chosen = left.count("::test_many")
    assert "::test_dear" not in left
    assert all(f"test_many[{number}]" in left for number in range(20))
    assert 20 + 10 < chosen < 20 + 35
    assert (whole.count("::test_many"), whole.count("::test_dear")) == (120, 1)


def test_a_file_of_thorough_tests_alone_is_not_even_read(folder: Path) -> None:
    (folder / "test_dear.py").write_text("import pytest\npytestmark = [pytest.mark.thorough]\nraise OSError('read')\n")
    left, whole = (run(folder, "--collect-only", *words) for words in (["-m", "not thorough"], []))
    assert ("OSError" in left, "OSError" in whole) == (False, True)


def test_what_failed_is_kept_with_what_it_said(folder: Path) -> None:
    run(folder, "-n", "2")
    said = json.loads((folder / ".pytest_cache/v/gateway/failures").read_text())
    assert list(said) == ["test_it.py::test_many[7]"]
    assert "seven is too much" in said["test_it.py::test_many[7]"]
    run(folder, "-k", "test_dear")
    assert json.loads((folder / ".pytest_cache/v/gateway/failures").read_text()) == {}


def test_a_file_that_cannot_be_read_is_kept_as_a_failure(folder: Path) -> None:
    (folder / "test_torn.py").write_text("def test_it(:\n")
    for words in ([], ["-n", "2"]):
        run(folder, *words)
        said = json.loads((folder / ".pytest_cache/v/gateway/failures").read_text())
        assert "SyntaxError" in said["test_torn.py"]


def test_what_is_known_of_unsteady_tests_is_of_tests_that_there_are() -> None:
    for name, entry in tomllib.loads((ROOT / "tests/unsteady.toml").read_text("utf-8")).items():
        file, _, function = name.partition("::")
        assert function.partition("[")[0] in (ROOT / file).read_text("utf-8"), f"{name} is gone: take it off the list"
        assert isinstance(entry["since"], date)
        assert entry["known"]
