"""Calls of the kernel: adopt orphans, die with the parent, end a group, name a caller.

All of that is Linux's. Elsewhere (macOS), and if a kernel lacks a call, the effect is left out; a call that cannot do
without it raises OSError. `find_kernel_support` reports what this system has.
"""

import ctypes
import errno
import os
import resource
import select
import signal
import socket
import struct
import sys
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TypeAlias

import msgspec

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
PR_SET_NO_NEW_PRIVS = 38
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # of glibc's mallopt
LARGE = 128 << 10  # bytes; a larger block is allocated on its own
ARENAS = 2  # pools of smaller blocks
PROC = Path("/proc")
PEER = 17  # SO_PEERCRED, which Python names only on Linux
PEER_HANDLE = 77  # SO_PEERPIDFD, which Python has no name for; Linux 6.5
CREDENTIALS = struct.Struct("3i")  # process, user, group
IS_LINUX = sys.platform == "linux"

# The argument of a call: a number, bytes to read, or a structure to read or fill.
Argument: TypeAlias = "int | bytes | ctypes.Structure | ctypes.Array[ctypes.c_char] | None"

_descriptors: ContextVar[int] = ContextVar("descriptors")  # the limit before it was raised

_library = ctypes.CDLL(None, use_errno=True)


class KernelSupport(msgspec.Struct, frozen=True):
    """The optional features of a system."""

    system: str  # Python's name for it
    has_proc: bool  # it lists all processes
    adopts_orphans: bool  # a detached process goes to its ancestor
    names_callers: bool  # it names the process at the other end of a socket
    limits_others: bool  # a program's limits can be set after its start

    @property
    def was_tried(self) -> bool:
        """Return True if the gateway was tested on such a system; on others it is expected to work."""
        return self.system == "linux"

    @property
    def missing(self) -> tuple[str, ...]:
        """Describe for people the differences on this system."""
        taken = "a tool of the agent that calls the gateway's commands is taken for you"
        return (*self.unheld, *(() if self.names_callers else (taken,)))

    @property
    def unheld(self) -> tuple[str, ...]:
        """Describe the limits on hooks that this system cannot enforce."""
        found = (
            (self.has_proc and self.adopts_orphans, "what a hook detaches is not found, and outlives it"),
            (self.limits_others, "programs that are hooks may take more memory than `memory:` says"),
        )
        return tuple(what for is_there, what in found if not is_there)


def find_kernel_support() -> KernelSupport:
    """Find the features by trying them, as far as that changes nothing."""
    return KernelSupport(
        sys.platform,
        has_proc=(PROC / "self").exists(),
        adopts_orphans=_answers("prctl", PR_GET_CHILD_SUBREAPER, ctypes.create_string_buffer(8), 0, 0, 0),
        names_callers=_can_name_callers(),
        limits_others=hasattr(resource, "prlimit"),
    )


def _answers(name: str, *arguments: Argument) -> bool:
    try:
        call_kernel(name, *arguments)
    except OSError:
        return False
    return True


def _can_name_callers() -> bool:
    one, other = socket.socketpair()
    with one, other:
        return find_peer(one) is not None


def _prctl(option: int, value: int) -> None:
    with suppress(OSError):
        call_kernel("prctl", option, value, 0, 0, 0)


def call_kernel(name: str, *arguments: Argument) -> int:
    """Call a function of the C library and return its result; raises OSError if it fails or does not exist."""
    function = getattr(_library, name, None) if IS_LINUX else None
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)
    found: int = function(*(_as_argument(one) for one in arguments))
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return found


def _as_argument(value: Argument) -> object:
    if isinstance(value, ctypes.Structure):
        return ctypes.byref(value)
    return ctypes.c_long(value) if isinstance(value, int) else value


def refuse_dumps() -> None:
    """Give this process's /proc files to root, and let no core be written.

    Other processes of its user cannot read the files then.
    """
    _prctl(PR_SET_DUMPABLE, 0)


def limit_free_memory() -> None:
    """Return freed memory to the system, or make it available to all threads.

    glibc by default has a pool for many threads each, and keeps large blocks in them; other libraries do not.
    """
    if hasattr(_library, "mallopt"):
        _library.mallopt(M_ARENA_MAX, ARENAS)
        _library.mallopt(M_MMAP_THRESHOLD, LARGE)


def wait_ended(pid: int) -> None:
    """Reap a child that has ended and that no code waits for."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def refuse_new_rights() -> None:
    """Give no child of this process more rights than it has, whatever bits its file has."""
    call_kernel("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose parent ends, even detached ones."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(number: signal.Signals) -> None:
    _prctl(PR_SET_PDEATHSIG, number)


def isolate(kind: int) -> None:
    """Enter a new namespace of this kind; without root, inside a user namespace that keeps the user.

    Raises OSError if the kernel cannot do it.
    """
    user, group = os.geteuid(), os.getegid()
    if user == 0 and _answers("unshare", kind):
        return
    call_kernel("unshare", CLONE_NEWUSER | kind)
    write_proc_file("setgroups", "deny")
    write_proc_file("uid_map", f"{user} {user} 1")
    write_proc_file("gid_map", f"{group} {group} 1")


def write_proc_file(name: str, text: str, process: int | str = "self") -> None:
    """Write a fact of this process or another, if the kernel has it and allows it."""
    with suppress(OSError):
        (PROC / str(process) / name).write_text(text)


def limit_data(pid: int, most: int) -> None:
    """Limit the data memory of this process, if the system can limit others."""
    if hasattr(resource, "prlimit"):
        with suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))


def set_descriptor_limit(most: int) -> None:
    """Allow this process so many open files; `restore_descriptor_limit` undoes it for children."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        _descriptors.set(soft)


def restore_descriptor_limit(pid: int) -> None:
    """Restore the original limit of open files for a program that this process started, if the system can.

    Some programs take long to close all possible descriptors, or cannot count so far.
    """
    if (most := _descriptors.get(0)) and hasattr(resource, "prlimit"):
        with suppress(OSError, ValueError):
            hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, hard))


def find_peer(connection: socket.socket) -> tuple[int, int] | None:
    """Return the process and the user at the other end; None if the system does not tell, or hides processes."""
    if not IS_LINUX or not (PROC / "self").exists():
        return None
    try:
        process, user, _ = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, PEER, CREDENTIALS.size))
    except OSError:
        return None
    return process, user


def open_peer(connection: socket.socket, pid: int) -> int | None:
    """Return a descriptor that shows if the process at the other end has ended; None: it has."""
    with suppress(OSError):
        return connection.getsockopt(socket.SOL_SOCKET, PEER_HANDLE)
    with suppress(OSError):
        return os.pidfd_open(pid)
    return None


def has_ended(handle: int) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(0))


def is_live(pid: int) -> bool:
    """Return True if the process exists, for any user."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def limit_weight(leader: int) -> bool:
    """Give this leader's session a tenth of the daemon's processor weight, if the kernel weighs sessions.

    Return False to retry: the session has not begun, or too many changes were made in this tenth of a second.
    """
    try:
        if os.getsid(leader) != leader:
            return False
        (PROC / str(leader) / "autogroup").write_text("10")
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def send_signal(pid: int, number: int) -> None:
    """Send a signal; no effect if the process is gone."""
    with suppress(OSError):
        os.kill(pid, number)


def kill_group(pid: int) -> None:
    """Kill the remaining processes of this group."""
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def kill_with_group(pid: int) -> None:
    """Kill this process, which may have left its group, and the group with its number."""
    kill_group(pid)
    send_signal(pid, signal.SIGKILL)
