"""One private systemd for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.systemd.private import System, lay_out, need_systemd, private_system


@pytest.fixture
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[System]:
    need_systemd(request)
    (tmp_path / "words").touch()
    lay_out(tmp_path / "units", tmp_path / "words")
    with private_system(tmp_path / "units", tmp_path / "words", tmp_path / "console") as running:
        yield running
