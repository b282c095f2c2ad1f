"""The large libraries that an agent may need: each is loaded when it is first used, and from here alone."""

import importlib
from collections.abc import Mapping
from typing import Any

from gateway.errors import ConfigError

LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "mcp": ("mcp", "mcp.client.stdio", "mcp.client.streamable_http", "httpx2"),
    "openai": ("openai", "httpx2"),
    "web": ("aiohttp", "yarl"),
}


def load(name: str) -> tuple[Any, ...]:
    """The modules of a library.

    Raises:
        ConfigError: they are not installed.
    """
    try:
        return tuple(importlib.import_module(module) for module in LIBRARIES[name])
    except ImportError as error:
        missing = LIBRARIES[name][0]
        raise ConfigError(f"{missing} is needed and cannot be loaded ({error}): install hermes-gateway anew") from error
