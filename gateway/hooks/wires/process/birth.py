"""The first moments of a worker: which descriptors, signals, limits and environment it lives with.

Our own descriptors lie high, so that a handler that closes "everything from 3 to 255" does not hit them.
"""

import faulthandler
import fcntl
import logging
import os
import resource
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TextIO

from gateway.hooks.wires.process import kernel
from gateway.hooks.wires.process.limit import lowered

# "Write down where you are", and "let go of what holds the loop". Real-time signals: hardly any program uses them.
_FIRST = getattr(signal, "SIGRTMIN", signal.SIGUSR1 - 1)
DUMP, FREE = _FIRST + 1, _FIRST + 2
HIGH = 1000
LOW = 255
STANDARD = 32  # the signals below are those that every system has
NURSERYS = (signal.SIGCHLD, signal.SIGTERM)  # the signals that the nursery handles itself
OOM_SCORE = "500"  # when memory is short, a hook goes before the daemon


class Ends(NamedTuple):
    """A worker's ends: of the wire to the daemon, of the pipe to its log, and the file for "where does it hang"."""

    wire: int
    log: int
    dump: int


class Limits(NamedTuple):
    """What this worker may use; None: as much as the daemon."""

    memory: int | None
    nice: int


def settle(ends: Ends, nursery: int, processes: int | None) -> Ends:
    """Be a process of its own: group, descriptors, signals; afterwards nothing of the nursery can be reached."""
    os.setpgid(0, 0)
    kernel.die_with_parent(signal.SIGKILL)
    kernel.adopt_orphans()
    if os.getppid() != nursery:
        os._exit(1)
    ends = _raise(ends)
    for number in NURSERYS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if processes is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        resource.setrlimit(resource.RLIMIT_NPROC, (lowered(processes, hard), hard))
    faulthandler.enable(ends.dump)
    faulthandler.register(DUMP, file=ends.dump, all_threads=True)
    return ends


def _raise(ends: Ends) -> Ends:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    high = HIGH if most == resource.RLIM_INFINITY else min(HIGH, most - 16)
    raised = Ends(*(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, high) for end in ends))
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, place in ((nothing, 0), (raised.log, 1), (raised.log, 2)):
        os.dup2(descriptor, place)
    os.closerange(3, min(raised))
    return raised


@contextmanager
def low_descriptors_taken() -> Generator[None, None, None]:
    """What is opened meanwhile lies above those that a careless handler closes."""
    taken: list[int] = []
    while not taken or taken[-1] < LOW:
        taken.append(os.dup(0))
    try:
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)


def forget_signals() -> None:
    """Once, in the nursery: what its own parents ignored (as `nohup` does) is no affair of a handler."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if number < STANDARD:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def furnish(name: str, env: Mapping[str, str], limits: Limits) -> None:
    """What a handler finds around it: environment, output, and the limits of what it may use."""
    if limits.memory is not None:  # not the address space: Node alone reserves more of that than anybody has
        resource.setrlimit(resource.RLIMIT_DATA, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kernel.write_fact("oom_score_adj", OOM_SCORE)
    kernel.write_fact("comm", f"hook:{name}"[:15])
    with suppress(OSError):
        os.nice(limits.nice)
    os.environ.clear()  # noqa: TID251 - only what the hook declared; the process began with an empty one
    os.environ.update(env)  # noqa: TID251
    sys.stdin = os.fdopen(0, closefd=False)
    sys.dont_write_bytecode = True
    mend_output(None)


def mend_output(log: int | None) -> None:
    """Whatever a handler did to stdout and stderr, it can print; what it put in their place stays."""
    for name, place in (("stdout", 1), ("stderr", 2)):
        if log is not None and not _is_open(place):
            os.dup2(log, place)
        stream = getattr(sys, name)
        if log is None or stream is None or getattr(stream, "closed", False):
            fresh = os.fdopen(place, "w", buffering=1, errors="backslashreplace", closefd=False)
            setattr(sys, name, fresh)
            setattr(sys, f"__{name}__", fresh)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def log_to_output() -> None:
    """What a handler logs is printed; said before the fork, since it is the same for all."""
    handler = LogOutput()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class LogOutput(logging.StreamHandler[TextIO]):
    """Logs to whatever is stderr at that moment."""

    def emit(self, record: Any) -> None:
        self.stream = sys.stderr
        super().emit(record)
