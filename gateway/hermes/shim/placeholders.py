"""What exists inside Hermes's own process alone: a name to import and to patch, without effect, and one warning.

A handler that patches Hermes's classes goes on with the rest of what it does; whoever really calls such a thing is told
that it is not there.
"""

import sys
from collections.abc import Callable
from opcode import opname
from types import FrameType, ModuleType
from typing import Any

from gateway.hermes.shim.gateway_calls import note_patch, warn_once


def _is_plain_reading(frame: FrameType) -> bool:
    """Whether the code says `thing.name`, and not `getattr(thing, "name", None)` or `hasattr`."""
    return opname[frame.f_code.co_code[frame.f_lasti]] in ("LOAD_ATTR", "LOAD_METHOD")


class PatchWarningType(type):
    """A class of which is told when somebody patches it: outside this process nothing changes by that."""

    def __setattr__(cls, name: str, value: Any) -> None:
        if not name.startswith("__") and not name.startswith("_abc"):
            note_patch(f"{cls.__module__}.{cls.__name__}.{name}")
        super().__setattr__(name, value)

    def __getattr__(cls, name: str) -> Any:
        """What a patch wraps: `before = GatewayRunner.send`. Who asks by `getattr` expects that it may not be there."""
        if name.startswith("__") or not _is_plain_reading(sys._getframe(1)):  # noqa: SLF001 - see there
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return PatchWarningType(name, (Placeholder,), {"__module__": f"{cls.__module__}.{cls.__name__}"})

    def __subclasses__(cls) -> list[Any]:
        if sys._getframe(1).f_globals.get("__name__") != "abc":  # noqa: SLF001 - `isinstance` asks too
            note_patch(f"the subclasses of {cls.__module__}.{cls.__name__}")
        return super().__subclasses__()


class Placeholder(metaclass=PatchWarningType):
    """Stands for a thing of Hermes's process."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(f"{type(self).__module__}.{type(self).__name__} exists inside Hermes alone, not here")


class PatchWarningModule(ModuleType):
    """A module of which is told when somebody puts something of their own into it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__") and not isinstance(value, ModuleType):  # a module that lies in it is imported
            note_patch(f"{self.__name__}.{name}")
        super().__setattr__(name, value)


def make_placeholder_getattr(module: str) -> Callable[[str], type]:
    """The `__getattr__` of a module of Hermes's."""
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
