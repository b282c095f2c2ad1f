"""The size of a fetched repository is bounded, whatever the server sends."""

import os
import subprocess
from pathlib import Path

import pytest

from gateway.errors import HookError
from gateway.installer.repository import extract_commit, fetch_commit
from tests.cli.test_install import commit, git
from tests.installer.archives import GREET

LIMIT = 1 << 20


@pytest.mark.row("T25")
@pytest.mark.parametrize("ref", ["", "main"])
@pytest.mark.parametrize("count", [0, 200])
def test_no_more_is_fetched_than_a_repository_may_have(tmp_path: Path, ref: str, count: int) -> None:
    """Few files come as they are, many in one file of git's own."""
    repository = tmp_path / "greet"
    first = commit(repository, {**GREET, **{str(number): str(number) for number in range(count)}})
    address = f"file://{repository}"
    assert fetch_commit(address, ref, tmp_path / "small", os.environ, LIMIT) == first
    (repository / "large").write_bytes(os.urandom(3 * LIMIT))
    commit(repository, {})
    with pytest.raises(HookError, match="larger than 1 MB"):
        fetch_commit(address, ref, tmp_path / "large", os.environ, LIMIT)


@pytest.mark.row("T25")
def test_a_tree_that_git_cannot_hold_is_not_asked_for(tmp_path: Path) -> None:
    """Forty times the same folder in each of three is more than sixty thousand files, in few kilobytes."""
    work = tmp_path / "greet"
    commit(work, {"x": ""})
    tree = git(work, "rev-parse", "HEAD^{tree}")
    for _ in range(3):
        entries = "".join(f"040000 tree {tree}\t{number}\n" for number in range(40))
        tree = subprocess.run(["git", "mktree"], cwd=work, input=entries, capture_output=True, text=True).stdout.strip()
    with pytest.raises(HookError, match="holds more than 50000 files"):
        extract_commit(work / ".git", tree, "", tmp_path, os.environ)


def test_whose_repository_it_is_is_said_by_git_and_what_helps_by_us(tmp_path: Path) -> None:
    commit(tmp_path / "greet", GREET)
    around = {**os.environ, "HOME": str(tmp_path), "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    with pytest.raises(HookError, match=r"dubious ownership in repository (.*\n)it belongs to another user"):
        fetch_commit(f"file://{tmp_path}/greet", "", tmp_path / "work", around)
