"""Landlock: a thread gives up rights to files, TCP ports and outside processes.

Versions of the kernel differ in the rights that they know. Rights that a version does not know are left out: it would
refuse the whole set.
"""

import os
import stat
import struct
from collections.abc import Iterable
from contextlib import suppress

from gateway.worker import kernel

# The same numbers on every machine; used only where they were tested.
MACHINES = ("x86_64", "aarch64")
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION = 1
UNDER_PATH, TO_PORT = 1, 2  # the kinds of rules

RUN, WRITE, READ, LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
CHARACTER_DEVICE, BLOCK_DEVICE = 1 << 6, 1 << 11
TRUNCATE, CONTROL_DEVICE = 1 << 14, 1 << 15
FIRST_RIGHTS = (1 << 13) - 1  # the rights of the first version
ON_FILES = RUN | WRITE | READ | TRUNCATE | CONTROL_DEVICE  # the rights that a rule about a plain file may name

BIND, CONNECT = 1 << 0, 1 << 1
ABSTRACT_SOCKETS, SIGNALS = 1 << 0, 1 << 1

FILES, MOVES, TRUNCATES, PORTS, DEVICES, OUTSIDERS = 1, 2, 3, 4, 5, 6
LATER = {
    TRUNCATES: "files elsewhere can be emptied",
    PORTS: "a list of TCP ports cannot be held, all ports are open to a hook that names one",
    OUTSIDERS: "processes outside can be signalled",
}


def find_version() -> int:
    """Return the version; 0 if the kernel has none, or disabled it at boot."""
    if os.uname().machine not in MACHINES:
        return 0
    try:
        return kernel.call_kernel("syscall", CREATE_RULESET, None, 0, ASK_VERSION)
    except OSError:
        return 0


def restrict(
    read: Iterable[str], write: Iterable[str], devices: Iterable[str], net: bool | tuple[int, ...], version: int
) -> None:
    """Restrict this thread. Raises OSError if the kernel refuses; part of it may apply by then."""
    known = _known_rights(version)
    ports = BIND | CONNECT if version >= PORTS and net is not True else 0
    outsiders = ABSTRACT_SOCKETS | SIGNALS if version >= OUTSIDERS else 0
    size = 24 if version >= OUTSIDERS else 16 if version >= PORTS else 8
    rules = kernel.call_kernel("syscall", CREATE_RULESET, struct.pack("=3Q", known, ports, outsiders)[:size], size, 0)
    try:
        for paths, rights in (
            (read, RUN | READ | LIST),
            (write, ~(CHARACTER_DEVICE | BLOCK_DEVICE)),
            (devices, READ | WRITE | TRUNCATE | CONTROL_DEVICE),
        ):
            for path in paths:
                _allow_path(rules, path, rights & known)
        for port in net if ports and not isinstance(net, bool) else ():
            kernel.call_kernel("syscall", ADD_RULE, rules, TO_PORT, struct.pack("=2Q", CONNECT, port), 0)
        kernel.call_kernel("syscall", RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _known_rights(version: int) -> int:
    rights = FIRST_RIGHTS
    for since, right in ((MOVES, 1 << 13), (TRUNCATES, TRUNCATE), (DEVICES, CONTROL_DEVICE)):
        if version >= since:
            rights |= right
    return rights


def _allow_path(rules: int, path: str, rights: int) -> None:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # an unreachable path needs no right
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(place).st_mode):
                rights &= ON_FILES
            kernel.call_kernel("syscall", ADD_RULE, rules, UNDER_PATH, struct.pack("=Qi", rights, place), 0)
        finally:
            os.close(place)
