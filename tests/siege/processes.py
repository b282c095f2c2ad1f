"""The processes of a besieged gateway, as the kernel knows them."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
OURS = b"/boot.py"  # the program of the fork server, and of the workers that it forks


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    command: bytes
    environ: bytes


def processes() -> Iterator[Process]:
    """Return the live processes; one that has ended and waits to be reaped does not count."""
    for entry in PROC.iterdir():
        with suppress(OSError, ValueError):
            pid = int(entry.name)
            state, parent, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            if state not in "ZX":
                environ = (entry / "environ").read_bytes()
                yield Process(pid, int(parent), (entry / "cmdline").read_bytes(), environ)


def fork_servers(daemon: int) -> list[int]:
    return [one.pid for one in processes() if one.parent == daemon and OURS in one.command]


def workers(daemon: int) -> list[int]:
    servers = fork_servers(daemon)
    return [one.pid for one in processes() if one.parent in servers and OURS in one.command]


def left_behind(home: Path, sleeps: str = "") -> dict[int, str]:
    """Return the live processes of gateways in this home, and of their hooks: `sleeps` is a word of these."""
    variable = b"HERMES_HOME=%s\0" % str(home).encode()
    words = {sleeps.encode()} if sleeps else set[bytes]()
    return {
        one.pid: one.command.replace(b"\0", b" ").decode("utf-8", "replace").strip()[:60]
        for one in processes()
        if one.pid != os.getpid() and (variable in one.environ or words.intersection(one.command.split(b"\0")))
    }


def end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
