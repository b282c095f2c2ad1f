"""The behaviour suite on each of our own networks.

The terminal is one of them, behind the gateway's own socket, and the page's chat behind its port; what cannot be there
is listed, with the reason.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.testing.networks.suite import *  # noqa: F403 - each test of it is one of this file
from gateway.testing.networks.suite_media import *  # noqa: F403 - each test of it is one of this file
from gateway.testing.networks.wire import Wire
from tests.adapters.wires import WAYS_IN, WIRES, WITHOUT, is_tried_on


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test on each network to which it applies."""
    if "wire" in metafunc.fixturenames:
        name = metafunc.function.__name__
        metafunc.parametrize("wire", [one for one in WIRES if is_tried_on(name, one)], indirect=True)


@pytest.fixture
async def wire(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Wire]:
    wire = WIRES[request.param](tmp_path / "home")
    async with wire.serving():
        yield wire


def test_what_is_left_out_is_there_for_the_others() -> None:
    assert {name for names in (WAYS_IN, *WITHOUT.values()) for name in names} <= set(globals())
