"""The check, from inside, if data would be lost when this idle process ends.

The contents of its modules are compared with those right after their import. Plain values, containers, functions and
the hook's own classes and objects can be compared. Anything else in a module counts as changed.
"""

import asyncio
import atexit
import os
import resource
import signal
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from gateway.worker.confine import is_open

MOST_VALUES = 20_000  # values that are compared
MOST_DESCRIPTORS = 1 << 16  # descriptors that are tried one by one, if the system has no list of them
THREADS_OF_ONE = 3  # links of the folder of a process with one thread

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_MAPPINGS = (dict, OrderedDict, defaultdict)
_CONTAINERS = (*_MAPPINGS, list, tuple, set, frozenset, deque)
# Values that never change, or whose changes belong to other code.
_FIXED = (
    *(types.ModuleType, types.BuiltinFunctionType, types.GenericAlias, types.UnionType, types.EllipsisType, Enum),
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType),
    *(types.CodeType, range),
)
_FIXED_MODULES = ("datetime.", "decimal.", "uuid.", "zoneinfo.", "typing.", "re.", "pathlib.", "logging.", "gateway.")


class UnknownValue(Exception):
    """A value whose contents cannot be compared."""


class IdleCheck:
    """The check of one worker.

    Create it before the hook runs; call `remember` after its import to compare its modules.
    """

    def __init__(self, loop: asyncio.SelectorEventLoop, folder: Path) -> None:
        self._loop = loop
        self._folders = tuple(f"{one}{os.sep}" for one in (folder, folder.resolve()))
        self._descriptors = _list_descriptors()
        self._endings = atexit._ncallbacks()  # noqa: SLF001 - the only way to count them
        self._before: list[Any] | None = None
        self._obstacle = ""
        self._is_comparing = False

    def remember(self) -> None:
        """Keep the present contents of its modules."""
        self._is_comparing = True
        try:
            self._before = [*list_values(self._find_modules())]
        except Exception as error:  # noqa: BLE001 - an object of the hook may raise it
            self._obstacle = str(error)

    def find_obstacle(self) -> str:
        """Return why the process must not end now; "" if nothing would be lost."""
        try:
            return self._find_running() or (self._find_change() if self._is_comparing else "")
        except Exception as error:  # noqa: BLE001 - by an object of the hook, or on a system without /proc
            return f"it cannot be looked at: {error}"

    def _find_running(self) -> str:
        if asyncio.all_tasks(self._loop):
            return "a task of it runs"
        timers = (handle for handle in self._loop._scheduled if not handle.cancelled())  # type: ignore[attr-defined]  # noqa: SLF001 - the only way to see them
        kinds = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
        if any(timers) or any(signal.getitimer(kind)[0] for kind in kinds):
            return "a timer of it runs"
        if os.stat("/proc/self/task").st_nlink > THREADS_OF_ONE:  # noqa: PTH116 - a sandbox allows this call
            return "a thread of it runs"
        if _has_children():
            return "a process that it started runs"
        if _list_descriptors() - self._descriptors:
            return "it has a file or a socket open"
        return ""

    def _find_change(self) -> str:
        if self._before is None:
            return self._obstacle
        if atexit._ncallbacks() != self._endings:  # noqa: SLF001 - the only way
            return "it has something to do at its end"
        now = [*list_values(self._find_modules())]
        is_same = len(now) == len(self._before) and all(map(_is_same, self._before, now))
        return "" if is_same else "what its modules hold has changed"

    def _find_modules(self) -> dict[str, Any]:
        modules = {name: one for name, one in sys.modules.items() if self._is_own(getattr(one, "__file__", None))}
        return {name: vars(one) for name, one in modules.items()}

    def _is_own(self, file: object) -> bool:
        return str(file).startswith(self._folders)


def list_values(modules: Mapping[str, dict[str, Any]]) -> Iterator[Any]:
    """Yield all values in the modules, in an order that is the same for the same contents. Raises UnknownValue."""
    own = {str(one.get("__name__")) for one in modules.values()}
    left: list[Any] = [{name: _drop_grammar(one) for name, one in modules.items()}]
    seen: set[int] = set()
    count = 0
    while left:
        value = left.pop()
        yield value
        count += 1
        if count > MOST_VALUES:
            raise UnknownValue("its modules hold too much to compare")
        if type(value) not in _PLAIN and id(value) not in seen:
            seen.add(id(value))
            parts = [*_list_parts(value, own)]
            yield len(parts)
            left += parts


def _drop_grammar(names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in names.items() if not (name.startswith("__") and name.endswith("__"))}


def _list_parts(value: Any, own: set[str]) -> Iterable[Any]:
    kind = type(value)
    if kind in _MAPPINGS:
        return [*value, *value.values()]
    if kind in _CONTAINERS:
        return list(value)
    if isinstance(value, type):
        return _list_class_parts(value) if value.__module__ in own else ()
    if kind is types.FunctionType:
        return _list_function_parts(value) if value.__module__ in own else ()
    if kind in (staticmethod, classmethod):
        return (value.__func__,)
    if kind is types.MethodType:
        return (value.__func__, value.__self__)
    if kind is property:
        return (value.fget, value.fset, value.fdel)
    if isinstance(value, _FIXED) or f"{kind.__module__}.".startswith(_FIXED_MODULES):
        return ()
    if kind.__module__ in own and hasattr(value, "__dict__") and kind.__basicsize__ == _PlainObject.__basicsize__:
        return (vars(value),)
    raise UnknownValue(f"its modules hold a {kind.__module__}.{kind.__qualname__}, which cannot be compared")


def _list_class_parts(value: type) -> list[Any]:
    functions = [one for one in vars(value).values() if isinstance(one, types.FunctionType)]
    return [_drop_grammar(vars(value)), functions]


def _list_function_parts(value: types.FunctionType) -> list[Any]:
    cells = [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]
    return [value.__code__, cells, value.__defaults__, value.__kwdefaults__, value.__dict__]


class _PlainObject:
    """An object that holds nothing but its attributes."""


def _is_same(before: Any, now: Any) -> bool:
    if before is now:
        return True
    kind = type(before)
    return kind is type(now) and (kind in _CONTAINERS or (kind in _PLAIN and bool(before == now)))


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _list_descriptors() -> frozenset[int]:
    """List the open descriptors, including the list's own."""
    try:
        return frozenset(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208 - only names are needed
    except OSError:  # in a sandbox
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, MOST_DESCRIPTORS)
        return frozenset(filter(is_open, range(most)))
