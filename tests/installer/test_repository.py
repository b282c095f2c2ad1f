"""What git fetches of a stranger's repository is bounded, whatever the server sends."""

import os
from pathlib import Path

import pytest

from gateway.errors import HookError
from gateway.installer.repository import fetch_commit
from tests.cli.test_install import commit
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
