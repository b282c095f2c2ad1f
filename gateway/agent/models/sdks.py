"""The libraries of model providers: large, and loaded when the first model of that provider is used, here alone."""

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from gateway.errors import ConfigError

SDKS: Mapping[str, tuple[str, ...]] = {
    "openai": ("openai", "httpx2"),
}


def load(provider: str) -> tuple[ModuleType | Any, ...]:
    """The modules of a provider's library.

    Raises:
        ConfigError: they are not installed.
    """
    try:
        return tuple(importlib.import_module(name) for name in SDKS[provider])
    except ImportError as error:
        raise ConfigError(
            f"models of {provider} need the package {error.name}, which is not installed: "
            f"install hermes-gateway anew, or `pip install {SDKS[provider][0]}` beside it"
        ) from error
