"""A home to configure."""

from pathlib import Path

import pytest

from gateway.config.home import Home
from gateway.config.permissions import prepare_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare_home(home)
    return home
