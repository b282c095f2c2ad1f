"""The large libraries that an agent may need: each is loaded when it is first used, and from here alone."""

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.errors import ConfigError
from gateway.installation import find_installation
from gateway.late_imports import load_modules

LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("anthropic", "httpx2"),
    "media": ("PIL", "pypdfium2"),
    "mcp": ("mcp", "mcp.client.stdio", "mcp.client.streamable_http", "mcp.shared.message", "mcp_types", "httpx2"),
    "nats": ("nats.aio.client",),
    # openai looks whether httpx is loaded, be it half: Telegram's library may load it in another thread meanwhile.
    "openai": ("openai", "httpx2", "httpx"),
    "otel": ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"),
    "web": ("aiohttp", "yarl"),
}

# Those that are not installed with the gateway itself, and the packages that bring them.
EXTRAS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("anthropic",),
    "media": ("pillow", "pypdfium2"),
    "nats": ("nats-py",),
    "otel": ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
}


def is_installed(name: str) -> bool:
    """Can it probably be loaded? To find out the packages around its modules are, but none of these."""
    try:
        return all(importlib.util.find_spec(module) is not None for module in LIBRARIES[name])
    except ModuleNotFoundError:  # the package around it is not there
        return False


def load_library(name: str) -> tuple[Any, ...]:
    """The modules of a library.

    Raises:
        ConfigError: they are not installed.
    """
    try:
        return load_modules(*LIBRARIES[name])
    except ImportError as error:
        what = f"{LIBRARIES[name][0]} is needed and cannot be loaded ({error})"
        remedy = describe_install(name) if name in EXTRAS else "install hermes-gateway anew"
        raise ConfigError(f"{what}: {remedy}") from error


def describe_install(name: str) -> str:
    """What brings an extra, for whoever runs the gateway: the line that fits how it was installed itself."""
    line = find_installation(Path(sys.prefix), Path(sys.base_prefix)).describe_addition(EXTRAS[name])
    return f"that needs the extra `{name}`, which whoever runs the gateway installs with: {line}"
