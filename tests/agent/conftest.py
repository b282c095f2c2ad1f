"""Fixtures of the agent's tests."""

from typing import Any

import pytest

from gateway.agent import Tool
from tests.agent.stage import WANTS_WEATHER, Stage, weather


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def call_weather() -> dict[str, Any]:
    return WANTS_WEATHER


@pytest.fixture
def weather_tool() -> Tool:
    return weather
