"""The behaviour suite as outsiders run it: pigeons, in a project of their own, by pytest alone."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ADAPTERS = Path(__file__).parent.parent.parent / "docs" / "adapters"
TEST = Path("tests") / "test_pigeon.py"
PATIENCE = 400

pytestmark = [pytest.mark.process, pytest.mark.timeout(PATIENCE + 50), pytest.mark.thorough]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the adapter and its tests, as the docs show one."""
    folder = tmp_path / "pigeons"
    for name in ("pigeon", "tests"):
        shutil.copytree(ADAPTERS / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run_suite(project: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "tests"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True)


def left_out_in(path: Path) -> list[str]:
    """The tests that a file says it leaves out."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "LEFT_OUT":
            return [name for names in ast.literal_eval(node.value).values() for name in names]
    raise AssertionError(path)


def test_pigeons_keep_the_promises_that_pigeons_can_keep(project: Path) -> None:
    done = run_suite(project, "-rA")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    found = re.search(r"(\d+) passed, (\d+) deselected", done.stdout)
    assert found, done.stdout
    assert int(found[1]) > 9
    left_out = left_out_in(project / TEST)
    assert int(found[2]) >= len(left_out)
    assert [name for name in left_out if name in done.stdout] == []


def test_a_reason_for_leaving_out_what_is_no_test_fails_the_run(project: Path) -> None:
    text = (project / TEST).read_text()
    (project / TEST).write_text(text.replace("test_an_album_is_one_message", "test_an_album_is_two_messages"))
    done = run_suite(project, "--collect-only")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "LEFT_OUT names what is no test: test_an_album_is_two_messages" in done.stdout + done.stderr


def test_a_pigeon_that_changes_what_it_carries_is_found_out(project: Path) -> None:
    adapter = project / "pigeon" / "adapter.py"
    adapter.write_text(adapter.read_text().replace("letter.read_text()", "letter.read_text()[::-1]"))
    done = run_suite(project, "-k", "test_any_text_arrives_as_it_is", "-x")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert 'received["text"] == text' in done.stdout, "and the plugin shows what it saw"
