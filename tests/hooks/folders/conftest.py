"""A home with running hooks."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.hooks import HookRegistry
from tests.hooks.folders.workshop import Home, Yard


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    made = Yard(tmp_path)
    made.registry = HookRegistry()
    async with made.serving(made.registry) as made.service:
        yield made
