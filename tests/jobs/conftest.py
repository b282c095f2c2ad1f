"""The house of the jobs' tests."""

from typing import Any

import pytest

from tests.engine.memory_engine import MemoryEngine
from tests.jobs.house import House


@pytest.fixture
async def house() -> Any:
    async with MemoryEngine() as engine:
        yield House(engine)
