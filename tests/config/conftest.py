"""A home to configure."""

from pathlib import Path

import pytest

from gateway.config.guard import prepare
from gateway.config.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare(home)
    return home
