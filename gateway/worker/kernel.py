"""What only the kernel can do for us: adopt orphans, die with the parent, end a group.

Where a kernel lacks a call, the effect is left out: nothing here raises for that.
"""

import ctypes
import errno
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PROC = Path("/proc")

# What a call is given: a number, bytes that it reads, or what it reads or fills.
Argument: TypeAlias = "int | bytes | ctypes.Structure | ctypes.Array[ctypes.c_char] | None"

_library = ctypes.CDLL(None, use_errno=True)
_prctl_call = getattr(_library, "prctl", None)


def _prctl(option: int, value: int) -> None:
    if _prctl_call is not None:
        _prctl_call(option, value, 0, 0, 0)


def call_kernel(name: str, *arguments: Argument) -> int:
    """What this function of the C library answers; OSError where it refuses, or is not there."""
    function = getattr(_library, name, None)
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
    """This process, and what it starts, has no network from now on. OSError where the kernel does not do that.

    An empty network namespace; who is not root gets it within a namespace of users, as the user that it was.
    """
    user, group = os.geteuid(), os.getegid()
    unshare = getattr(_library, "unshare", None)
    if unshare is None:
        raise OSError("this system has no network namespaces")
    if user == 0 and unshare(CLONE_NEWNET) == 0:
        return
    if unshare(CLONE_NEWUSER | CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    write_proc_file("setgroups", "deny")
    write_proc_file("uid_map", f"{user} {user} 1")
    write_proc_file("gid_map", f"{group} {group} 1")


def write_proc_file(name: str, text: str) -> None:
    """Of this process, where the kernel knows such a fact and allows it."""
    with suppress(OSError):
        Path(f"/proc/self/{name}").write_text(text)


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
