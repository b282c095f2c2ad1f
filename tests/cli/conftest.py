"""A home for commands that work without a gateway, and a hook for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.installer.archives import GREET, put


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    """To be started by the test."""
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.home.root.mkdir(mode=0o700)
        yield gateway


@pytest.fixture
def greet(tmp_path: Path) -> Path:
    return put(tmp_path / "greet", GREET)
