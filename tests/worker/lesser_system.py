"""A gateway as on a system without Linux's own features: `python -m tests.worker.lesser_system run`.

There is no /proc, and the kernel knows no prctl, no Landlock, no files in memory, no namespaces, no handles of
processes, and nobody at the other end of a socket. It is the kernel that says so, to the daemon and to all that it
starts.
"""

import ctypes
import errno
import os
import socket
import sys

from gateway.cli import main
from gateway.worker import kernel, seccomp

PRIVATE = 0x44000  # MS_REC | MS_PRIVATE: what is mounted here is mounted nowhere else
NEW_MOUNTS, NEW_USERS = 0x20000, 0x10000000
LANDLOCK, HANDLE = (444, 445, 446), 434
# prctl, memfd_create, unshare and getsockopt, by machine.
NUMBERS = {"x86_64": (157, 319, 272, 55), "aarch64": (167, 279, 97, 209)}
CANNOT = 77


def hide_proc() -> None:
    user, group = os.geteuid(), os.getegid()
    kernel.call_kernel("unshare", NEW_MOUNTS if user == 0 else NEW_MOUNTS | NEW_USERS)
    if user:
        kernel.write_proc_file("setgroups", "deny")
        kernel.write_proc_file("uid_map", f"{user} {user} 1")
        kernel.write_proc_file("gid_map", f"{group} {group} 1")
    library = ctypes.CDLL(None, use_errno=True)
    for source, target, kind, flags in ((b"none", b"/", None, PRIVATE), (b"none", b"/proc", b"tmpfs", 0)):
        if library.mount(source, target, kind, flags, None):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def lose_calls() -> None:
    *unknown, options = NUMBERS[os.uname().machine]
    absent = (seccomp.RETURN, 0, 0, seccomp.REFUSE | errno.ENOSYS)
    no_option = (seccomp.RETURN, 0, 0, seccomp.REFUSE | errno.ENOPROTOOPT)
    allow = (seccomp.RETURN, 0, 0, seccomp.ALLOW)
    program = [(seccomp.LOAD_WORD, 0, 0, seccomp.NUMBER_AT)]
    for number in (*unknown, *LANDLOCK, HANDLE):
        program += [(seccomp.IF_EQUAL, 0, 1, number), absent]
    which = (seccomp.LOAD_WORD, 0, 0, seccomp.FIRST_ARGUMENT_AT + 8 * 2)
    checks = [
        which,
        (seccomp.IF_EQUAL, 1, 0, socket.SO_PEERCRED),
        (seccomp.IF_EQUAL, 0, 1, kernel.PEER_HANDLE),
        no_option,
    ]
    program += [(seccomp.IF_EQUAL, 0, len(checks), options), *checks, allow]
    kernel.refuse_new_rights()
    seccomp.apply_filter(program)


if __name__ == "__main__":
    try:
        hide_proc()
        lose_calls()
    except OSError as error:
        sys.stderr.write(f"no such system can be had here: {error}\n")
        sys.exit(CANNOT)
    sys.exit(main())
