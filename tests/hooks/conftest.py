"""Fixtures of the tests of hooks."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def light_heap() -> Iterator[None]:
    """Freeze the heap of the run so far: the collector would walk it for long, and it is not the gateway's."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
