"""`gateway.hooks`, as a handler sees it."""

import importlib
from typing import Any

from gateway.events import Deny, End, Event, Retry, is_yes, on

__all__ = ["Deny", "End", "Event", "Retry", "is_yes", "on"]


def __getattr__(name: str) -> Any:
    """Hermes has its registry in a module of this name."""
    if name == "HookRegistry":
        return importlib.import_module("gateway.hermes.shim.hook_registry").HookRegistry
    raise AttributeError(f"gateway.hooks has no {name!r} for hooks; there is {', '.join(__all__)}")
