"""The mounts that make all but a few places read-only, for this process and its children.

No mode, owner or time changes there. Landlock does not check such a change by a path. A read-only mount refuses it. Own
mounts need root's rights, or a user namespace, in which this process has those rights for a moment.
"""

import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from functools import cache

from gateway.worker import kernel

SET_ATTRIBUTES = 442  # mount_setattr, Linux 5.12; the same number on every machine
HERE, RECURSIVE = -100, 0x8000
READ_ONLY, PRIVATE = 1, 1 << 18
BIND, BIND_RECURSIVELY = 1 << 12, 1 << 14


@cache
def can_restrict() -> bool:
    """Return True if this kernel makes such mounts for us. A child tries it, so call it in a process of one thread."""
    pid = os.fork()
    if pid == 0:
        try:
            restrict(["/"])
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def restrict(writable: Iterable[str]) -> None:
    """Make the mounts.

    Raises OSError if the kernel refuses, which may leave us without a user: ask `can_restrict` first.
    """
    places = _list_outermost(writable)
    kernel.isolate(kernel.CLONE_NEWNS)
    _set_attributes("/", READ_ONLY, 0, PRIVATE)
    for place in places:
        kernel.call_kernel("mount", place, place, None, BIND | BIND_RECURSIVELY, None)
        try:
            _set_attributes(place, 0, READ_ONLY)
        except PermissionError:  # the host has mounted a part of it read-only
            with suppress(PermissionError):
                _set_attributes(place, 0, READ_ONLY, flags=0)
    can_restrict.cache_clear()  # inside, the answer differs
    with suppress(OSError):
        os.chdir(os.getcwd())  # noqa: PTH109 - enter the mount that now covers it


def _list_outermost(places: Iterable[str]) -> list[bytes]:
    """Leave out places inside others: between two mounts, a move is a copy."""
    found: list[str] = []
    for place in sorted({os.path.realpath(place) for place in places}):
        inside = any(place.startswith(f"{other.rstrip('/')}/") for other in found)
        if not inside and os.path.lexists(place):
            found.append(place)
    return list(map(os.fsencode, found))


def _set_attributes(path: str | bytes, given: int, taken: int, spread: int = 0, flags: int = RECURSIVE) -> None:
    wanted = struct.pack("=4Q", given, taken, spread, 0)
    kernel.call_kernel("syscall", SET_ATTRIBUTES, HERE, os.fsencode(path), flags, wanted, len(wanted))
