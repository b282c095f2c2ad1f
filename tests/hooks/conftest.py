"""Fixtures of the tests of hooks."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def light_heap() -> Iterator[None]:
    """What a whole run of tests has heaped up takes the collector long to walk, and is not of the gateway."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
