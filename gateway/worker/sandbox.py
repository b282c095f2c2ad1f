"""The sandbox: files, network and sockets that a process can reach. No process leaves it, nor do its children.

Theory of operation

The kernel has three means for it, which need no rights. Landlock restricts everything with a path or a TCP port
(`landlock.py`). Own mounts protect modes, owners and times, which Landlock does not check (`mounts.py`). A filter of
system calls covers the rest (`seccomp.py`). Each binds only the calling thread and its later children: so a process is
restricted right after its fork, before it has a second thread. Files that are open by then stay open. If a kernel has
less, less is restricted, and `find_support` says what is missing.

It does not restrict `stat` of files elsewhere, `chdir` to a folder there, or `inotify`, which reports the names that
appear in it or go. Without own mounts (in a container, say), a command still changes modes, owners and times as its
user may, while for a hook every such change seems to succeed and is not made.

Root inside a sandbox is less than root: it loses everything that would lead out (modules of the kernel, raw devices,
other processes' memory).
"""

import ctypes
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from gateway.worker import kernel, landlock, mounts, seccomp

# Every program opens one of these, and none of them contains data.
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/alternatives")
# Not the folders above them, which also contain private keys.
CERTIFICATES = (
    "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust", "/etc/ca-certificates", "/etc/ca-certificates.conf",
)  # fmt: skip
# Files for the resolver, for user names and for the time of day.
RESOLVER = (
    "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services",
    "/etc/protocols", "/etc/passwd", "/etc/group", "/etc/localtime", "/etc/timezone",
    "/run/systemd/resolve/stub-resolv.conf", "/run/systemd/resolve/resolv.conf",
)  # fmt: skip
# The capabilities that lead out of a sandbox, by the kernel's numbers.
LEADING_OUT = (
    2,  # to read whatever there is, by a file's handle
    9,  # to make a file unchangeable, for which it need only be open to be read
    12,  # to set up the network
    16, 17,  # to load modules, to reach the hardware
    19, 20, 21, 22,  # to trace, to end the machine's accounts, to administer, to restart
    25, 27,  # to set the clock, to make devices
    32, 33, 34,  # to change the kernel's own rules, to read its log
    38, 39, 40,  # to watch, to load programs into the kernel, to restore processes
)  # fmt: skip
CAPABILITIES_VERSION, MOST_CAPABILITIES = 0x20080522, 64


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """The restrictions of a process; paths are absolute, and missing ones are ignored.

    `read` allows to read and to run, `write` all changes to files. `net` is no network, all of it, or only connections
    to these TCP ports. `sockets` are those with a path or an abstract name: a process outside may serve them. `modes`:
    if no mounts protect them, modes of files elsewhere may still change.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    net: bool | tuple[int, ...] = False
    sockets: bool = False
    modes: bool = False


class SandboxSupport(msgspec.Struct, frozen=True):
    """The support by this host's kernel: Landlock's version (0: none), and if it filters system calls."""

    landlock: int
    has_filter: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """Describe for people what is not restricted here, and the remedy."""
        found = []
        if self.landlock < landlock.FILES:
            found.append("files are not restricted: this kernel has no Landlock (Linux 5.13, `landlock` in `lsm=`)")
        else:
            for version, what in landlock.LATER.items():
                if self.landlock < version:
                    found.append(f"{what}: this kernel's Landlock is of version {self.landlock}, not {version}")
        if not self.has_filter:
            found.append(
                "network and sockets are not restricted: this kernel has no seccomp filter for this architecture"
            )
        return tuple(found)


def find_support() -> SandboxSupport:
    return SandboxSupport(landlock.find_version(), seccomp.can_filter())


def restrict(sandbox: Sandbox) -> None:
    """Restrict this thread and its later children. Raises OSError if the kernel fails."""
    support = find_support()
    kernel.refuse_new_rights()
    if has_mounts := mounts.can_restrict():
        mounts.restrict(sandbox.write)
    _lay_down_capabilities(LEADING_OUT if os.geteuid() == 0 else range(MOST_CAPABILITIES))
    if support.landlock:
        landlock.restrict(sandbox.read, sandbox.write, DEVICES, sandbox.net, support.landlock)
    if support.has_filter:
        seccomp.restrict(sandbox.net, sandbox.sockets, has_mounts or sandbox.modes)


def find_needed_paths() -> tuple[str, ...]:
    """Return the paths that any program reads: interpreter, libraries, certificates, and the resolver's files."""
    found = dict.fromkeys((*PROGRAMS, *CERTIFICATES, *RESOLVER, *_find_interpreter()))
    return tuple(path for path in found if not any(path.startswith(f"{other}/") for other in found))


def _find_interpreter() -> Iterator[str]:
    """Yield the running environment, its base Python, and our own files, wherever they are."""
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    yield from (sys.executable, os.path.realpath(sys.executable))
    yield from (entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages"))
    yield str(Path(__file__).resolve().parents[1])


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def _lay_down_capabilities(numbers: Iterable[int]) -> None:
    """Drop capabilities of this thread; its children cannot get them back, since they gain no new rights."""
    with suppress(OSError):
        header, data = _CapabilityHeader(CAPABILITIES_VERSION, 0), ctypes.create_string_buffer(24)
        kernel.call_kernel("capget", header, data)
        sets = list(struct.unpack("=6I", data.raw))  # effective, permitted, inheritable; the first 32, then the others
        for number in numbers:
            for kind in range(3):
                sets[number // 32 * 3 + kind] &= ~(1 << number % 32)
        kernel.call_kernel("capset", header, struct.pack("=6I", *sets))
