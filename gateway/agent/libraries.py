"""The large libraries that an agent may need: each is loaded when it is first used, and from here alone."""

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

from gateway.errors import ConfigError

LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("anthropic", "httpx2"),
    "mcp": ("mcp", "mcp.client.stdio", "mcp.client.streamable_http", "mcp.shared.message", "mcp_types", "httpx2"),
    "openai": ("openai", "httpx2"),
    "web": ("aiohttp", "yarl"),
}

EXTRAS = frozenset({"anthropic"})  # those that are not installed with the gateway itself


def is_installed(name: str) -> bool:
    """Can it probably be loaded? Nothing is, to find out."""
    return all(importlib.util.find_spec(module) is not None for module in LIBRARIES[name])


def load_library(name: str) -> tuple[Any, ...]:
    """The modules of a library.

    Raises:
        ConfigError: they are not installed.
    """
    try:
        return tuple(importlib.import_module(module) for module in LIBRARIES[name])
    except ImportError as error:
        missing, extra = LIBRARIES[name][0], f"[{name}]" if name in EXTRAS else ""
        raise ConfigError(
            f"{missing} is needed and cannot be loaded ({error}): install hermes-gateway{extra}"
        ) from error
