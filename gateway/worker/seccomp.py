"""A filter of system calls, for what Landlock leaves open.

That is UDP, MPTCP, a first packet of TCP that connects, sockets with a path, and io_uring, which bypasses filters.
Landlock restricts paths and TCP ports, but not the calls that make sockets. Nor does it restrict what has no path: the
kernel's keyring, and memory that outlives a process. Namespaces are refused because they bring rights. So are limits,
priorities and processors of another process: with a limit set by a hook, the kernel would end the gateway.

If no mounts protect them, changes of modes, owners and times seem to succeed and are not made: a program that copies a
file or unpacks an archive continues, and an error would end it.

The filter is a small program that the kernel runs before each call: it sees the call's number and its arguments as
numbers, never the data behind pointers. Its answer allows the call, or is the error with which it fails. Calls of
another architecture (32 bits, x32) have other numbers, so all of these are refused.
"""

import ctypes
import errno
import os
import socket
import struct
import sys
from typing import NamedTuple

from gateway.worker import kernel

PR_SET_SECCOMP, WITH_FILTER = 22, 2

# The filter's own instructions.
LOAD_WORD, MASK, RETURN = 0x20, 0x54, 0x06
IF_EQUAL, IF_ANY_BIT = 0x15, 0x45
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NUMBER_AT, MACHINE_AT, FIRST_ARGUMENT_AT = 0, 4, 16  # the offsets of the call's facts, in bytes
X32 = 0x40000000  # marks the calls of x32 programs, which no one uses

KIND_OF_SOCKET = 0xF  # the bits of a socket's type; the others are flags
FAST_OPEN = 0x20000000  # the flag of a message that connects on its own
NETLINK = 16  # how a program asks the kernel for the host's own addresses
TCP = 6


class Machine(NamedTuple):
    """A processor architecture: its mark, and the numbers of its system calls."""

    mark: int
    socket: int
    pair: int
    listen: int
    sends: tuple[tuple[int, int], ...]  # each with the index of its flags among its arguments
    spaces: tuple[int, int]  # clone and unshare, whose first argument has the namespace flags
    lasting: tuple[int, ...]  # to enter a namespace, the keyring, memory of System V
    modes: tuple[int, ...]  # to change a mode, an owner or a time
    attributes: tuple[int, ...]  # to change further attributes, such as access lists
    times: int  # utimensat, which changes an open file if it gets no path
    control: int  # ioctl: it changes a file's flags, even if the file is open only for reading
    # prlimit, and calls that set scheduling and processors of the process in the first argument
    of_process: tuple[int, ...]
    of_kind: tuple[tuple[int, int], ...]  # priorities, each with the number that stands for a single process


MACHINES = {
    "x86_64": Machine(
        *(0xC000003E, 41, 53, 50, ((44, 3), (46, 2), (307, 3)), (56, 272)),
        lasting=(308, 248, 249, 250, 29, 30),
        modes=(90, 91, 92, 93, 94, 132, 235, 260, 261, 268, 452),
        attributes=(188, 189, 190, 197, 198, 199, 463, 466, 469),
        times=280,
        control=16,
        of_process=(302, 142, 144, 203, 314),
        of_kind=((141, 0), (251, 1)),
    ),
    "aarch64": Machine(
        *(0xC00000B7, 198, 199, 201, ((206, 3), (211, 2), (269, 3)), (220, 97)),
        lasting=(268, 217, 218, 219, 194, 196),
        modes=(52, 53, 54, 55, 452),
        attributes=(5, 6, 7, 14, 15, 16, 463, 466, 469),
        times=88,
        control=29,
        of_process=(261, 118, 119, 122, 274),
        of_kind=((140, 0), (30, 1)),
    ),
}
IO_URING, NEW_CLONE = 425, 435
NAMESPACES = 0x7E020000  # the flags for new ones
FILE_FLAGS = (0x40086602, 0x401C5820, 0x40087602)  # to set flags, attributes and the version of a file
NEW_CLOCK = 0x80  # one more, which in `clone` is part of a signal's number

ALLOWED = (RETURN, 0, 0, ALLOW)
Program = list[tuple[int, int, int, int]]  # code, jump if true, jump if false, value


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def can_filter() -> bool:
    """Return True if this kernel filters, on an architecture with known numbers."""
    if os.uname().machine not in MACHINES or sys.byteorder != "little":
        return False
    try:
        kernel.call_kernel("prctl", PR_SET_SECCOMP, WITH_FILTER, None, 0, 0)
    except OSError as error:
        return error.errno == errno.EFAULT  # it tried to read a filter there
    return False


def restrict(net: bool | tuple[int, ...], sockets: bool, modes: bool) -> None:
    """Install the filter. Raises OSError if the kernel refuses. The thread must have refused new rights before."""
    apply_filter(build_filter(MACHINES[os.uname().machine], net, sockets, modes))


def apply_filter(program: Program) -> None:
    instructions = b"".join(struct.pack("=HBBI", *one) for one in program)
    kernel.call_kernel("prctl", PR_SET_SECCOMP, WITH_FILTER, _FilterProgram(len(program), instructions), 0, 0)


def build_filter(machine: Machine, net: bool | tuple[int, ...], sockets: bool, modes: bool) -> Program:
    """Build the filter; with `modes` the kernel decides about changes of modes, owners and times."""
    own = _refuse(errno.EPERM)
    program = [(LOAD_WORD, 0, 0, MACHINE_AT), (IF_EQUAL, 1, 0, machine.mark), own, (LOAD_WORD, 0, 0, NUMBER_AT)]
    if machine is MACHINES["x86_64"]:
        program += [(IF_ANY_BIT, 0, 1, X32), own]
    program += _when(IO_URING, [own])
    program += _check_namespaces(machine)
    for number in machine.lasting:
        program += _when(number, [own])
    program += _check_others(machine)
    if not modes:
        program += _check_modes(machine)
    program += _when(machine.socket, _check_socket(net, sockets))
    if not sockets:
        program += _when(machine.pair, _check_pair())
    if net is not True:
        program += _when(machine.listen, [_refuse()])  # it takes a port automatically
        for number, place in machine.sends:
            program += _when(number, [_load(place), (IF_ANY_BIT, 0, 1, FAST_OPEN), _refuse(), ALLOWED])
    return [*program, ALLOWED]


def _check_namespaces(machine: Machine) -> Program:
    """Check for new namespaces. `clone3` hides its flags from filters; programs that miss it use `clone`."""
    program = _when(NEW_CLONE, [_refuse(errno.ENOSYS)])
    for number, flags in zip(machine.spaces, (NAMESPACES, NAMESPACES | NEW_CLOCK), strict=True):
        program += _when(number, [_load(0), (IF_ANY_BIT, 0, 1, flags), _refuse(errno.EPERM), ALLOWED])
    return program


def _check_others(machine: Machine) -> Program:
    """Check that a process sets only its own limits and priorities; these calls name it as process 0."""
    program: Program = []
    for number in machine.of_process:
        program += _when(number, [_load(0), (IF_EQUAL, 1, 0, 0), _refuse(errno.EPERM), ALLOWED])
    for number, single in machine.of_kind:
        itself: Program = [_load(0), (IF_EQUAL, 0, 2, single), _load(1), (IF_EQUAL, 1, 0, 0), _refuse(errno.EPERM)]
        program += _when(number, [*itself, ALLOWED])
    return program


def _check_modes(machine: Machine) -> Program:
    done = _refuse(0)
    program: Program = []
    for number in machine.modes:
        program += _when(number, [done])
    for number in machine.attributes:
        program += _when(number, [_refuse(errno.ENOTSUP)])
    flags: Program = [_load(1)]
    for request in FILE_FLAGS:
        flags += [(IF_EQUAL, 0, 1, request), _refuse(errno.ENOTSUP)]
    program += _when(machine.control, [*flags, ALLOWED])
    # A pointer has two halves, which are checked one by one.
    path: Program = [_load(1), (IF_EQUAL, 0, 2, 0), _load(1, half=4), (IF_EQUAL, 1, 0, 0), done, ALLOWED]
    return [*program, *_when(machine.times, path)]


def _check_socket(net: bool | tuple[int, ...], sockets: bool) -> Program:
    """Check the kind of a new socket: family, type and protocol decide."""
    families: list[int] = [socket.AF_UNIX] if sockets else []
    if net is True:
        families += [socket.AF_INET, socket.AF_INET6, NETLINK]
    program = [_load(0)]
    for family in families:
        program += [(IF_EQUAL, 0, 1, family), ALLOWED]
    if net and net is not True:
        kind: Program = [_load(1), (MASK, 0, 0, KIND_OF_SOCKET), (IF_EQUAL, 0, 4, socket.SOCK_STREAM), _load(2)]
        plain: Program = [(IF_EQUAL, 1, 0, 0), (IF_EQUAL, 0, 1, TCP), ALLOWED]
        program += [(IF_EQUAL, 1, 0, socket.AF_INET), (IF_EQUAL, 0, len(kind + plain), socket.AF_INET6), *kind, *plain]
    return [*program, _refuse()]


def _check_pair() -> Program:
    """Check a socket pair: a datagram pair could send to any path; a stream is tied to its other end."""
    kind: Program = [_load(1), (MASK, 0, 0, KIND_OF_SOCKET)]
    for one in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        kind += [(IF_EQUAL, 0, 1, one), ALLOWED]
    return [*kind, _refuse()]


def _when(number: int, checks: Program) -> Program:
    """Apply checks to this call; every way through them ends in an answer."""
    return [(IF_EQUAL, 0, len(checks), number), *checks]


def _load(argument: int, half: int = 0) -> tuple[int, int, int, int]:
    return LOAD_WORD, 0, 0, FIRST_ARGUMENT_AT + 8 * argument + half


def _refuse(number: int = errno.EACCES) -> tuple[int, int, int, int]:
    return RETURN, 0, 0, REFUSE | number
