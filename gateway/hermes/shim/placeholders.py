"""The placeholders for parts of Hermes's own process: names to import and to patch, without effect, with a warning.

A handler that patches Hermes's classes goes on with the rest of its work; a handler that really calls a placeholder
gets an error.
"""

import sys
from collections.abc import Callable
from opcode import opname
from types import FrameType, ModuleType
from typing import Any

from gateway.hermes.shim.gateway_calls import note_patch, warn_once


def _is_plain_reading(frame: FrameType) -> bool:
    """Tell if the code says `thing.name`, and not `getattr(thing, "name", None)` or `hasattr`."""
    return opname[frame.f_code.co_code[frame.f_lasti]] in ("LOAD_ATTR", "LOAD_METHOD")


class PatchWarningType(type):
    """The type of classes that warn when they are patched: outside this process a patch changes nothing."""

    def __setattr__(cls, name: str, value: Any) -> None:
        if not name.startswith("__") and not name.startswith("_abc"):
            note_patch(f"{cls.__module__}.{cls.__name__}.{name}")
        super().__setattr__(name, value)

    def __getattr__(cls, name: str) -> Any:
        """Return a placeholder for a patch to wrap: `before = GatewayRunner.send`.

        A call of `getattr` gets an AttributeError, since its caller expects that the name may be missing.
        """
        if name.startswith("__") or not _is_plain_reading(sys._getframe(1)):  # noqa: SLF001 - see there
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return PatchWarningType(name, (Placeholder,), {"__module__": f"{cls.__module__}.{cls.__name__}"})

    def __subclasses__(cls) -> list[Any]:
        if sys._getframe(1).f_globals.get("__name__") != "abc":  # noqa: SLF001 - `isinstance` asks too
            note_patch(f"the subclasses of {cls.__module__}.{cls.__name__}")
        return super().__subclasses__()


class Placeholder(metaclass=PatchWarningType):
    """A name without effect, in place of a part of Hermes's process."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(f"{type(self).__module__}.{type(self).__name__} exists inside Hermes alone, not here")


class PatchWarningModule(ModuleType):
    """A module that warns when a hook sets a name in it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__") and not isinstance(value, ModuleType):  # setting a submodule is an import
            note_patch(f"{self.__name__}.{name}")
        super().__setattr__(name, value)


def make_placeholder_getattr(module: str) -> Callable[[str], type]:
    """Make the `__getattr__` of one of Hermes's modules."""
    sys.modules[module].__class__ = PatchWarningModule
    made: dict[str, type] = {}

    def stand_in(name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if name not in made:
            warn_once(f"{module}.{name} exists inside Hermes alone; here it is a name without effect")
            made[name] = PatchWarningType(name, (Placeholder,), {"__module__": module})
        return made[name]

    return stand_in
