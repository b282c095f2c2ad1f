"""A plugin for pytest, loaded wherever hermes-gateway is installed: what the tests of a hook take as fixtures."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import testing  # what stands in it is loaded when a test wants it, and in no other run

MANIFEST_FILE = "HOOK.yaml"


@pytest.fixture(name="hook_folder")
def find_hook_folder(request: pytest.FixtureRequest) -> Path:
    """The folder of the hook to which the file of tests belongs: it lies in it, or in a folder below."""
    for folder in Path(request.path).parents:
        if (folder / MANIFEST_FILE).exists():
            return folder
    raise FileNotFoundError(f"{request.path} lies in no folder with a {MANIFEST_FILE}")


@pytest.fixture(name="hermes_gateway")
def open_gateway(tmp_path: Path) -> "Iterator[testing.GatewayProcess]":
    """A real gateway in a home of its own, to be started by the test; it ends with it."""
    with testing.GatewayProcess(tmp_path / "home") as gateway:
        yield gateway
