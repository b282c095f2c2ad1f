"""The counts of the gateway stay within their bounds: `bench/trips.py` counts, `bench/bounds.toml` has the most."""

from pathlib import Path

import pytest

from bench import trips

pytestmark = [pytest.mark.thorough, pytest.mark.process]

ROOT = Path(__file__).parent.parent


@pytest.mark.timeout(600)
def test_no_count_is_more_than_its_bound() -> None:
    found, bounds = trips.count(ROOT), trips.read_bounds()
    trips.show([ROOT], [found], bounds)
    assert found.keys() == bounds.keys()
    assert not trips.find_broken(found, bounds) or trips.list_other_packages()
