"""What only the kernel can do for us: adopt orphans, die with the parent, end a group, say who calls.

All of that is Linux's. Elsewhere (macOS), and where a kernel lacks a call, the effect is left out; what cannot be done
without it raises OSError, and says so. `find_kernel_support` tells what this system has, for those who run it.
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
LARGE = 128 << 10  # bytes; what is larger lies by itself
ARENAS = 2  # pools of what is smaller
PROC = Path("/proc")
PEER = 17  # SO_PEERCRED, which Python names on Linux alone
PEER_HANDLE = 77  # SO_PEERPIDFD, which Python has no name for; Linux 6.5
CREDENTIALS = struct.Struct("3i")  # process, user, group
IS_LINUX = sys.platform == "linux"

# What a call is given: a number, bytes that it reads, or what it reads or fills.
Argument: TypeAlias = "int | bytes | ctypes.Structure | ctypes.Array[ctypes.c_char] | None"

_descriptors: ContextVar[int] = ContextVar("descriptors")  # before the limit was raised

_library = ctypes.CDLL(None, use_errno=True)


class KernelSupport(msgspec.Struct, frozen=True):
    """What a system does for the gateway beside running it."""

    system: str  # as Python calls it
    has_proc: bool  # it tells of all processes
    adopts_orphans: bool  # what detaches itself comes to whom it comes from
    names_callers: bool  # who is at the other end of a socket
    limits_others: bool  # a program gets its limits after its start

    @property
    def was_tried(self) -> bool:
        """Whether the gateway was run on such a system, as far as we know; elsewhere it is expected to work."""
        return self.system == "linux"

    @property
    def missing(self) -> tuple[str, ...]:
        """For people: what is otherwise here."""
        taken = "a tool of the agent that calls the gateway's commands is taken for you"
        return (*self.unheld, *(() if self.names_callers else (taken,)))

    @property
    def unheld(self) -> tuple[str, ...]:
        """What of that hooks are not held in."""
        found = (
            (self.has_proc and self.adopts_orphans, "what a hook detaches is not found, and outlives it"),
            (self.limits_others, "programs that are hooks may take more memory than `memory:` says"),
        )
        return tuple(what for is_there, what in found if not is_there)


def find_kernel_support() -> KernelSupport:
    """Tried, as far as that changes nothing."""
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
    """What this function of the C library answers; OSError where it refuses, or is not there, or not Linux's."""
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
    """What /proc has of this process belongs to root, and nobody of its own user looks into it; no core is written."""
    _prctl(PR_SET_DUMPABLE, 0)


def limit_free_memory() -> None:
    """What is freed goes back to the system, or is there for all threads. glibc by itself has a pool for each of many
    threads, and once something large was freed, it keeps room for as much in them; other libraries do neither.
    """
    if hasattr(_library, "mallopt"):
        _library.mallopt(M_ARENA_MAX, ARENAS)
        _library.mallopt(M_MMAP_THRESHOLD, LARGE)


def wait_ended(pid: int) -> None:
    """Let go of a child that has ended and that nobody waits for."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def refuse_new_rights() -> None:
    """Nothing that this process starts has more rights than it, whatever bits its file bears."""
    call_kernel("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def adopt_orphans() -> None:
    """Descendants whose parent ends become our children, however they detached themselves."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(number: signal.Signals) -> None:
    _prctl(PR_SET_PDEATHSIG, number)


def isolate_network() -> None:
    """This process, and what it starts, has no network from now on. OSError where the kernel does not do that."""
    isolate(CLONE_NEWNET)


def isolate(kind: int) -> None:
    """Be in a new namespace of this kind; who is not root gets it within one of users, as the user that it was."""
    user, group = os.geteuid(), os.getegid()
    if user == 0 and _answers("unshare", kind):
        return
    call_kernel("unshare", CLONE_NEWUSER | kind)
    write_proc_file("setgroups", "deny")
    write_proc_file("uid_map", f"{user} {user} 1")
    write_proc_file("gid_map", f"{group} {group} 1")


def write_proc_file(name: str, text: str, process: int | str = "self") -> None:
    """Of this process or another, where the kernel knows such a fact and allows it."""
    with suppress(OSError):
        (PROC / str(process) / name).write_text(text)


def limit_data(pid: int, most: int) -> None:
    """What this process may have of memory for data; where the system can limit others."""
    if hasattr(resource, "prlimit"):
        with suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))


def set_descriptor_limit(most: int) -> None:
    """Let this process open so many files; what it begins from now on remembers how many it could open before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        _descriptors.set(soft)


def restore_descriptor_limit(pid: int) -> None:
    """Let a program that this process has started open as many as this could before; where the system can limit others.

    Some take long to close all that they might have open, or cannot count so far.
    """
    if (most := _descriptors.get(0)) and hasattr(resource, "prlimit"):
        with suppress(OSError, ValueError):
            hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, hard))


def find_peer(connection: socket.socket) -> tuple[int, int] | None:
    """The process and the user at the other end; None where the system does not say, or shows no processes."""
    if not IS_LINUX or not (PROC / "self").exists():
        return None
    try:
        process, user, _ = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, PEER, CREDENTIALS.size))
    except OSError:
        return None
    return process, user


def open_peer(connection: socket.socket, pid: int) -> int | None:
    """A descriptor by which it can be seen whether the process at the other end has ended; None: it has."""
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
    """Whether there is such a process, whoever it belongs to."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def limit_weight(leader: int) -> bool:
    """What is in the session of this leader gets together a tenth of what the daemon does, where the kernel weighs
    sessions. False: not yet; the leader has yet to begin it, or too many were changed in this tenth of a second.
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
    """Without effect where the process is gone."""
    with suppress(OSError):
        os.kill(pid, number)


def kill_group(pid: int) -> None:
    """Kill the processes of this group that are still there."""
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def kill_with_group(pid: int) -> None:
    """Kill this process, which may have left its group, and those in the group that bears its number."""
    kill_group(pid)
    send_signal(pid, signal.SIGKILL)
