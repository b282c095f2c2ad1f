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
    "media": ("PIL", "pypdfium2"),
    "mcp": ("mcp", "mcp.client.stdio", "mcp.client.streamable_http", "mcp.shared.message", "mcp_types", "httpx2"),
    "nats": ("nats.aio.client",),
    "otel": ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"),
    "socks": ("socksio",),
    "web": ("aiohttp", "yarl"),
}

# Libraries that are not installed with the gateway itself, and the packages that provide them.
EXTRAS: Mapping[str, tuple[str, ...]] = {
    "mcp": ("mcp",),
    "media": ("pillow", "pypdfium2"),
    "nats": ("nats-py",),
    "otel": ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
    "socks": ("socksio",),
}


def is_installed(name: str) -> bool:
    """Return True if the library can probably be loaded. Packages around its modules may be loaded for that."""
    modules = LIBRARIES[name]
    wanted = [one for one in modules if "." not in one or one.partition(".")[0] not in modules]
    try:
        return all(importlib.util.find_spec(module) is not None for module in wanted)
    except ModuleNotFoundError:  # the package around it is not there
        return False


def load_library(name: str) -> tuple[Any, ...]:
    """Load the modules of a library.

    Raises:
        ConfigError: they are not installed.
    """
    try:
        return load_modules(*LIBRARIES[name])
    except ImportError as error:
        what = f"{LIBRARIES[name][0]} is needed and cannot be loaded ({error})"
        remedy = describe_install(name) if name in EXTRAS else "install hermes-gateway again"
        raise ConfigError(f"{what}: {remedy}") from error


def describe_install(name: str) -> str:
    """Return the command that installs an extra, by the way in which the gateway itself was installed."""
    line = find_installation(Path(sys.prefix), Path(sys.base_prefix)).describe_addition(EXTRAS[name])
    return f"that needs the extra `{name}`, which whoever runs the gateway installs with: {line}"
