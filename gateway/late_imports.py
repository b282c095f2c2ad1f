"""Modules that are loaded at their first use, in a thread beside the event loop: one thread at a time.

If two threads load modules that import each other, Python lets one continue with an incomplete module. A name is then
missing for an instant, and a turn, or a network, fails.
"""

from importlib import import_module
from threading import RLock
from types import ModuleType

_ONE_AT_A_TIME = RLock()


def load_modules(*names: str) -> tuple[ModuleType, ...]:
    """Load these modules. Raises ImportError if one of them cannot be loaded."""
    with _ONE_AT_A_TIME:
        return tuple(import_module(name) for name in names)
