"""Who descends from whom, as the kernel sees it, and how a whole tree is ended.

Where there is no /proc (not on Linux) nobody is found, and process groups have to do.
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
    """A process, its parent, and when it began, in clock ticks since the machine started."""

    pid: int
    parent: int
    started: int
    state: str  # by the letter that the kernel has for it
    ran: float  # seconds for which it has had a processor
    threads: int

    @property
    def is_zombie(self) -> bool:
        """It has ended, and nobody has waited for it."""
        return self.state == "Z"


def list_processes() -> Iterator[ProcessInfo]:
    for entry in os.scandir(PROC) if PROC.is_dir() else ():
        if entry.name.isdigit() and (found := read_process(int(entry.name))) and not found.is_zombie:
            yield found


def read_process(pid: int) -> ProcessInfo | None:
    """None where it is gone, or not to be seen."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()  # the name before may hold blanks and parentheses
    ran = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return ProcessInfo(pid, int(fields[1]), int(fields[19]), fields[0], ran, int(fields[17]))


def find_ended_children(parent: int) -> set[int]:
    """Its children that have ended, and that nobody has waited for."""
    threads = PROC / str(parent) / "task"
    found: set[int] = set()
    for thread in os.listdir(threads) if threads.is_dir() else ():  # noqa: PTH208 - names are all that is wanted
        with suppress(OSError):
            found |= {int(pid) for pid in (threads / thread / "children").read_text().split()}
    return {pid for pid in found if (process := read_process(pid)) and process.is_zombie}


def find_descendants(ancestors: set[int], spared: frozenset[int] = frozenset()) -> list[ProcessInfo]:
    """All that come from these, but for the spared and what comes from them."""
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
    """Tell if it has sockets open beside its input and output; one that cannot be looked at may have some."""
    try:
        files = [file for file in (PROC / str(pid) / "fd").iterdir() if int(file.name) > 2]
        return any(str(file.readlink()).startswith("socket:") for file in files)
    except OSError:
        return True


def find_children(pid: int) -> list[int]:
    """Of a process with one thread."""
    try:
        return [int(child) for child in (PROC / str(pid) / "task" / str(pid) / "children").read_text().split()]
    except OSError:  # a kernel without this file
        return [process.pid for process in list_processes() if process.parent == pid]


def count_threads(pids: Iterable[int]) -> dict[int, int]:
    """Of each of these processes and all that come from it: one look at all there are, however many are asked for."""
    found = dict.fromkeys(pids, 0)
    # One of these may look as if it had ended, though threads of it live on.
    known = {one.pid: one for one in (*list_processes(), *filter(None, map(read_process, found)))}
    for process in known.values():
        above: ProcessInfo | None = process
        for _ in range(MOST_GENERATIONS):  # who reads while pids are given anew may see a circle
            if above is None:
                break
            if above.pid in found:
                found[above.pid] += process.threads
            above = known.get(above.parent)
    return found


def count_all_threads() -> int:
    """Of all processes of the machine, at hardly any cost; 0 where the system does not tell."""
    try:
        return int((PROC / "loadavg").read_text().split()[3].partition("/")[2])
    except OSError:
        return 0


def count_user_threads(user: int, without: set[int]) -> int:
    """How many threads this user runs in other processes; what the kernel counts against a limit of processes."""
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
    """Its parent, the parent of that, and so on."""
    found: list[int] = []
    while (process := read_process(pid)) and process.parent:
        pid = process.parent
        found.append(pid)
    return found


def kill_tree(find_pids: Callable[[], list[int]]) -> int:
    """Kill all that this finds, though they may be making more: first stop each one that can still make another.

    Returns how many they were.
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
