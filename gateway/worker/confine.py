"""The first moments of a worker: its descriptors, signals, limits and environment.

Our own descriptors have high numbers, so that a hook that closes "everything from 3 to 255" does not hit them.
"""

import faulthandler
import fcntl
import logging
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TextIO

from gateway.worker import kernel
from gateway.worker.process_tree import count_all_threads, count_user_threads, find_descendants
from gateway.worker.protocol import NETWORK_LEFT, NICE, OOM_SCORE, WorkerSpec

LOOK_SECONDS = 1.0  # how long a count of all processes stays valid


class ProcessLimit:
    """The limit on the processes of all hooks, beside one each; a single hook may use three quarters of it."""

    def __init__(self, more: int) -> None:
        self._more = more
        self._threads = count_all_threads()
        self._others = 0  # threads of the same user outside of hooks
        self._looked = -math.inf
        self._workers = 0  # the number of workers when the limits were last set
        self.most_of_one = more * 3 // 4
        self.largest = 0  # threads of the largest hook at the last look

    def needs_look(self) -> bool:
        """Return True if the number of threads on the host changed by half of what the largest hook may still start.

        A large fall counts too, since it may hide that one hook has more. A look reads all processes of the host.
        """
        now, left = count_all_threads(), self.most_of_one - self.largest
        needs_look = abs(now - self._threads) >= max(self._more // 8, left // 2)
        self._threads = now if needs_look else min(now, self._threads)
        return needs_look

    def now(self, workers: int) -> int | None:
        """Return the limit for so many workers; None if the system has none.

        If many workers start at once, only the first start counts the processes.
        """
        if os.getuid() == 0:
            return None
        if time.monotonic() - self._looked > LOOK_SECONDS:
            ours = {one.pid for one in find_descendants({os.getpid()})}
            self._others = count_user_threads(os.getuid(), ours)
            self._looked = time.monotonic()
        return self._others + self._more + workers

    def is_outgrown(self, workers: int) -> bool:
        """Return True if there are so many more workers that the limits of the first ones are too low."""
        return workers >= self._workers + self._more // 8

    def renew(self, pids: Iterable[int]) -> None:
        known = [*pids]
        self._workers = len(known)
        limit = self.now(len(known)) if known and hasattr(resource, "prlimit") else None
        if limit is None:
            return
        for pid in known:
            with suppress(OSError, ValueError):
                _, hard = resource.prlimit(pid, resource.RLIMIT_NPROC)
                resource.prlimit(pid, resource.RLIMIT_NPROC, (capped_to_hard(limit, hard), hard))


def capped_to_hard(limit: int, hard: int) -> int:
    """Return a limit that the kernel accepts below this hard one."""
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


# The signals for "write your stacks" and "let go of the loop". Real-time signals: hardly any program uses them.
_FIRST_SIGNAL = getattr(signal, "SIGRTMIN", signal.SIGUSR1 - 1)
DUMP_SIGNAL, RELEASE_SIGNAL = _FIRST_SIGNAL + 1, _FIRST_SIGNAL + 2
HIGH_DESCRIPTORS = 1000
LAST_LOW_DESCRIPTOR = 255
FIRST_REALTIME = 32  # lower signals exist on every system
FORK_SERVER_SIGNALS = (signal.SIGCHLD, signal.SIGTERM)  # the signals that the fork server handles itself


class WorkerDescriptors(NamedTuple):
    """A worker's wire to the daemon, its pipe to its log, its stack file, and its input."""

    wire: int
    log: int
    dump: int
    stdin: int


def isolate(ends: WorkerDescriptors, fork_server: int, processes: int | None) -> WorkerDescriptors:
    """Isolate this process: session, descriptors, signals; afterwards the fork server is out of reach."""
    os.setsid()
    kernel.die_with_parent(signal.SIGKILL)
    kernel.adopt_orphans()
    if os.getppid() != fork_server:
        os._exit(1)
    ends = _move_descriptors(ends)
    for number in FORK_SERVER_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if processes is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        resource.setrlimit(resource.RLIMIT_NPROC, (capped_to_hard(processes, hard), hard))
    faulthandler.enable(ends.dump)
    faulthandler.register(DUMP_SIGNAL, file=ends.dump, all_threads=True)
    return ends


def _move_descriptors(ends: WorkerDescriptors) -> WorkerDescriptors:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    high = HIGH_DESCRIPTORS if most == resource.RLIM_INFINITY else min(HIGH_DESCRIPTORS, most - 16)
    raised = WorkerDescriptors(*(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, high) for end in ends))
    for descriptor, place in ((raised.stdin, 0), (raised.log, 1), (raised.log, 2)):
        os.dup2(descriptor, place)
    os.closerange(3, min(raised))
    return raised


@contextmanager
def reserve_low_descriptors() -> Generator[None, None, None]:
    """Give files opened in this block numbers above those that a careless hook closes."""
    taken: list[int] = []
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    last = LAST_LOW_DESCRIPTOR if most == resource.RLIM_INFINITY else min(LAST_LOW_DESCRIPTOR, most // 2)
    while not taken or taken[-1] < last:
        taken.append(os.dup(0))
    try:
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)


def reset_signals() -> None:
    """Reset the signals once, in the fork server: hooks do not inherit what its parents ignored (as `nohup` does)."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if number < FIRST_REALTIME:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def set_surroundings(spec: WorkerSpec) -> None:
    """Set a hook's environment, output and limits."""
    if spec.memory is not None:  # not the address space: Node alone reserves more of that than any host has
        resource.setrlimit(resource.RLIMIT_DATA, (spec.memory, spec.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kernel.write_proc_file("oom_score_adj", OOM_SCORE)
    kernel.write_proc_file("comm", f"hook:{spec.name}"[:15])
    with suppress(OSError):
        os.nice(NICE)
    os.environ.clear()  # noqa: TID251 - only the variables that the hook declared; the process started without any
    os.environ.update(spec.env)  # noqa: TID251
    time.tzset()  # the C library has read TZ once, in the process that this one was forked from
    sys.stdin = os.fdopen(0, closefd=False)
    sys.dont_write_bytecode = True
    repair_output(None)
    if spec.is_offline:
        try:
            kernel.isolate(kernel.CLONE_NEWNET)
        except OSError as error:
            print(f"{NETWORK_LEFT}: {error}", file=sys.stderr)  # noqa: T201 - the hook's own log


def repair_output(log: int | None) -> None:
    """Restore stdout and stderr if the hook closed them; a replacement by the hook stays."""
    for name, place in (("stdout", 1), ("stderr", 2)):
        if log is not None and not is_open(place):
            os.dup2(log, place)
        stream = getattr(sys, name)
        if log is None or stream is None or getattr(stream, "closed", False):
            fresh = os.fdopen(place, "w", buffering=1, errors="backslashreplace", closefd=False)
            setattr(sys, name, fresh)
            setattr(sys, f"__{name}__", fresh)


def is_open(descriptor: int) -> bool:
    """Return True if this process has the descriptor open."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def log_to_stderr() -> None:
    """Print log records; called before the fork, since it is the same for all hooks."""
    handler = StderrHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class StderrHandler(logging.StreamHandler[TextIO]):
    """A log handler that writes to the present stderr."""

    def emit(self, record: Any) -> None:
        self.stream = sys.stderr
        super().emit(record)
