"""A gateway with an owner on a network, and a home on a desk that is connected to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.desk.desk_program import Desk, open_desk


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path) as desk:
        yield desk
