"""The tree of processes, as the kernel sees it, and how to kill a whole tree.

Without /proc (not on Linux) no process is found, and process groups must suffice.
"""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from gateway.worker.kernel import PROC, send_signal

MAX_ROUNDS = 40
MOST_GENERATIONS = 1000


class ProcessInfo(NamedTuple):
    """A process, its parent, and its start, in clock ticks since boot."""

    pid: int
    parent: int
    started: int
    state: str  # the kernel's letter for it
    ran: float  # seconds of processor time
    threads: int

    @property
    def mark(self) -> str:
        """The process as no other one is called until the host starts again."""
        return f"{self.pid}/{self.started}"

    @property
    def is_zombie(self) -> bool:
        """Return True if the process has ended, but was not reaped."""
        return self.state == "Z"


def list_processes() -> Iterator[ProcessInfo]:
    for entry in os.scandir(PROC) if PROC.is_dir() else ():
        if entry.name.isdigit() and (found := read_process(int(entry.name))) and not found.is_zombie:
            yield found


def read_process(pid: int) -> ProcessInfo | None:
    """Read one process; None if it is gone, or not visible."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()  # the name before may contain blanks and parentheses
    ran = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return ProcessInfo(pid, int(fields[1]), int(fields[19]), fields[0], ran, int(fields[17]))


def is_running(mark: str) -> bool:
    """Return False if the process with this mark has ended; a mark of another form is of another machine."""
    pid, _, _ = mark.partition("/")
    if not pid.isdecimal():
        return True
    found = read_process(int(pid))
    return found is not None and found.mark == mark and not found.is_zombie


def find_ended_children(parent: int) -> set[int]:
    """Return the children of a process that have ended, but were not reaped."""
    threads = PROC / str(parent) / "task"
    found: set[int] = set()
    for thread in os.listdir(threads) if threads.is_dir() else ():  # noqa: PTH208 - only names are needed
        with suppress(OSError):
            found |= {int(pid) for pid in (threads / thread / "children").read_text().split()}
    return {pid for pid in found if (process := read_process(pid)) and process.is_zombie}


def find_descendants(ancestors: set[int], spared: frozenset[int] = frozenset()) -> list[ProcessInfo]:
    """Find all descendants of these processes, without the spared ones and their descendants."""
    below: dict[int, list[ProcessInfo]] = {}
    for process in list_processes():
        below.setdefault(process.parent, []).append(process)
    found: list[ProcessInfo] = []
    waiting = list(ancestors)
    while waiting:
        for process in below.get(waiting.pop(), ()):
            if process.pid not in spared:
                found.append(process)
                waiting.append(process.pid)
    return found


def has_sockets(pid: int) -> bool:
    """Return True if a process has sockets open beside its input and output, or if that is not visible."""
    try:
        files = [file for file in (PROC / str(pid) / "fd").iterdir() if int(file.name) > 2]
        return any(str(file.readlink()).startswith("socket:") for file in files)
    except OSError:
        return True


def find_children(pid: int) -> list[int]:
    """List the children of a process with one thread."""
    try:
        return [int(child) for child in (PROC / str(pid) / "task" / str(pid) / "children").read_text().split()]
    except OSError:  # a kernel without this file
        return [process.pid for process in list_processes() if process.parent == pid]


def count_threads(pids: Iterable[int]) -> dict[int, int]:
    """Count the threads of each process and its descendants, with one pass over all processes."""
    found = dict.fromkeys(pids, 0)
    # One of these may look as if it had ended, though threads of it live on.
    known = {one.pid: one for one in (*list_processes(), *filter(None, map(read_process, found)))}
    for process in known.values():
        above: ProcessInfo | None = process
        for _ in range(MOST_GENERATIONS):  # reused pids may form a circle while we read
            if above is None:
                break
            if above.pid in found:
                found[above.pid] += process.threads
            above = known.get(above.parent)
    return found


def count_all_threads() -> int:
    """Count all threads of the host, at hardly any cost; 0 if the system does not tell."""
    try:
        return int((PROC / "loadavg").read_text().split()[3].partition("/")[2])
    except OSError:
        return 0


def count_user_threads(user: int, without: set[int]) -> int:
    """Count the threads of this user in other processes, which count against its limit."""
    total = 0
    for entry in os.scandir(PROC) if PROC.is_dir() else ():
        if entry.name.isdigit() and int(entry.name) not in without:
            with suppress(OSError):
                status = (PROC / entry.name / "status").read_text(errors="replace")
                facts = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
                if int(facts["Uid"].split()[0]) == user:
                    total += int(facts["Threads"])
    return total


def find_ancestors(pid: int) -> list[int]:
    """Return the parent of a process, the parent of that, and so on."""
    found: list[int] = []
    while (process := read_process(pid)) and process.parent:
        pid = process.parent
        found.append(pid)
    return found


def kill_tree(find_pids: Callable[[], list[int]]) -> int:
    """Kill all processes that `find_pids` returns, even while they start more: first stop each one, then kill.

    Return their number.
    """
    stopped: set[int] = set()
    for _ in range(MAX_ROUNDS):
        fresh = [pid for pid in find_pids() if pid not in stopped]
        if not fresh:
            break
        for pid in fresh:
            send_signal(pid, signal.SIGSTOP)
        stopped.update(fresh)
    for pid in stopped:
        send_signal(pid, signal.SIGKILL)
    return len(stopped)
