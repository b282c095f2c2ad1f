"""The pytest plugin, loaded wherever hermes-gateway is installed: the fixtures for tests of a hook."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import testing  # its names are loaded when a test wants them, and in no other run

MANIFEST_FILE = "HOOK.yaml"


@pytest.fixture(name="hook_folder")
def find_hook_folder(request: pytest.FixtureRequest) -> Path:
    """Return the folder of the hook that the test file belongs to: its own folder, or one above."""
    for folder in Path(request.path).parents:
        if (folder / MANIFEST_FILE).exists():
            return folder
    raise FileNotFoundError(f"{request.path} lies in no folder with a {MANIFEST_FILE}")


@pytest.fixture(name="hermes_gateway")
def open_gateway(tmp_path: Path) -> "Iterator[testing.GatewayProcess]":
    """Yield a real gateway in its own home, which the test starts; it ends with the test."""
    with testing.GatewayProcess(tmp_path / "home") as gateway:
        yield gateway
