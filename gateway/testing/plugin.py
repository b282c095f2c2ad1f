"""A plugin for pytest, loaded wherever hermes-gateway is installed: what the tests of a hook take as fixtures."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gateway.testing import GatewayProcess

MANIFEST_FILE = "HOOK.yaml"


@pytest.fixture
def hook_folder(request: pytest.FixtureRequest) -> Path:
    """The folder of the hook to which the file of tests belongs: it lies in it, or in a folder below."""
    for folder in Path(request.path).parents:
        if (folder / MANIFEST_FILE).exists():
            return folder
    raise FileNotFoundError(f"{request.path} lies in no folder with a {MANIFEST_FILE}")


@pytest.fixture
def hermes_gateway(tmp_path: Path) -> "Iterator[GatewayProcess]":
    """A real gateway in a home of its own, to be started by the test; it ends with it."""
    testing = importlib.import_module("gateway.testing")  # in the run of a test that wants it, and in no other
    with testing.GatewayProcess(tmp_path / "home") as gateway:
        yield gateway
