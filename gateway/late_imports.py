"""Modules that are loaded when they are first used, in a thread beside the event loop: one thread at a time.

Of two threads that load what imports each other, Python lets one go on with a module that is not through yet. It then
lacks a name that it has an instant later, and a turn, or a network, has failed.
"""

from importlib import import_module
from threading import RLock
from types import ModuleType

_ONE_AT_A_TIME = RLock()


def load_modules(*names: str) -> tuple[ModuleType, ...]:
    """Raises ImportError: one of them cannot be loaded."""
    with _ONE_AT_A_TIME:
        return tuple(import_module(name) for name in names)
