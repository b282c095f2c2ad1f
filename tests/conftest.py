"""What every test may ask for."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The chat libraries are bound to asyncio, and so are we."""
    return "asyncio"
