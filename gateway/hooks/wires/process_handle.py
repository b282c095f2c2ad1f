"""A worker's process, seen from the gateway: its control, its end, and the check whether the process hangs."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from gateway.hooks.wires.output import HookOutput
from gateway.hooks.wires.wire import Disconnection, HookFailed
from gateway.worker.error_report import is_program_file
from gateway.worker.kernel import PROC, kill_group
from gateway.worker.process_tree import ProcessInfo, read_process
from gateway.worker.protocol import EXIT_REASONS, START_EXITS

MAX_DUMP_BYTES = 64 << 10
MAX_FILE_BYTES = 1 << 20
CLOSED = "it closed the wire to the gateway"
LOOK_PAUSE = 0.25  # seconds between two checks
HANGING_AFTER = 6.0  # seconds of its own time in which a process could have answered
STOPPED_AFTER = 1.0  # seconds for which a signal may stop a process
STOPPED, IS_WAITING_ITS_TURN = "Tt", "RD"


def read_memory(pid: int) -> int:
    """Return the private bytes of this process; 0 if the system does not tell, or the process is gone."""
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Private_Dirty:", "Private_Clean:")))


class StackDumpFile:
    """A memory file to which a worker's interpreter itself writes its stacks, even inside C code."""

    def __init__(self) -> None:
        self.descriptor = write_memory_file("hook-stacks")
        self._seen = 0

    def read(self) -> str:
        """Return the text that was written since the last call."""
        data = os.pread(self.descriptor, MAX_DUMP_BYTES, self._seen)
        self._seen += len(data)
        if self._seen > MAX_FILE_BYTES:  # both ends share the offset
            os.ftruncate(self.descriptor, 0)
            self._seen = os.lseek(self.descriptor, 0, os.SEEK_SET)
        return "".join(_without_our_frames(data.decode("utf-8", "replace").splitlines(keepends=True)))

    def close(self) -> None:
        os.close(self.descriptor)


def _without_our_frames(lines: Iterable[str]) -> Iterator[str]:
    """Drop our own frames below the frames of the hook."""
    was_foreign = is_below = False
    for line in lines:
        is_ours = is_program_file(line.partition('"')[2])
        if not line.startswith("  File"):
            was_foreign = is_below = False
        elif not is_ours:
            was_foreign = True
        is_below = is_below or (is_ours and was_foreign)
        if not is_below:
            yield line


def write_memory_file(purpose: str, content: bytes = b"") -> int:
    """Return the descriptor of a file without a name, in memory if the system can."""
    try:
        descriptor = os.memfd_create(purpose)
    except (AttributeError, OSError):
        descriptor, name = tempfile.mkstemp()
        Path(name).unlink()
    while content:
        content = content[os.write(descriptor, content) :]
    return descriptor


class ProcessControl(Protocol):
    """The fork server's control of this one process; it has no effect after the end of the process."""

    def __call__(self, verb: str, since: float = 0) -> None: ...


class ProcessHandle(msgspec.Struct, eq=False):
    """The handle on a process. When the process and its children have ended, the handle calls `drain`, then `ended`."""

    _control: ProcessControl
    output: HookOutput
    _drain: Callable[[], None]
    _ended: Callable[[], None]
    _why: str = ""
    stacks: StackDumpFile = msgspec.field(default_factory=StackDumpFile)
    pid: int = 0
    gone: Disconnection = msgspec.field(default_factory=Disconnection)
    hangs: str = ""  # the stacks of its threads when a call was last over its time
    _traceback: str = ""  # of the last error
    is_stopping: bool = False
    has_begun: bool = False  # its hook is imported
    _is_killed: bool = False  # by another process
    _is_orphaned: bool = False

    def dump(self) -> None:
        self._control("dump")

    def free(self) -> None:
        self._control("free")

    def kill(self, reason: str) -> None:
        """Kill the process; the first reason is kept."""
        self._why = self._why or reason
        if not self.gone:
            self._control("kill")

    def prune(self, age: float) -> None:
        """Kill the processes that the worker has started in the last `age` seconds."""
        if hasattr(time, "CLOCK_BOOTTIME"):
            self._control("prune", time.clock_gettime(time.CLOCK_BOOTTIME) - age)

    def look(self) -> str:
        """Return the stacks that the worker's interpreter has written since the last call."""
        text = self.stacks.read()
        self.hangs = text or self.hangs
        return text

    def note(self, text: str, traceback: str = "") -> None:
        self._traceback = traceback
        self.output.note(f"{text}\n{traceback}" if traceback else text)

    def failure(self) -> HookFailed:
        """Return the error for calls after the end of the process."""
        return HookFailed(self.gone.reason, kind="killed" if self._is_killed else "died", traceback=self._traceback)

    def lose(self, why: str) -> None:
        """Handle the loss of the fork server: a worker dies with the fork server, but its children do not."""
        self._is_orphaned = True
        if self.pid:
            kill_group(self.pid)
        self.end(why)

    def end(self, how: int | str) -> None:
        """Handle the end; `how` is the exit code, minus the signal that ended the process, or a text."""
        if self.gone:
            return
        self._drain()
        self._is_killed = how == -signal.SIGKILL and self._why in ("", CLOSED)
        why = self._reason(how)
        stacks = self.look()
        if not self.is_stopping:
            self.note(why, stacks)
        self.gone.tell(why, self._is_orphaned)
        self._ended()
        self.stacks.close()
        self.output.close()

    def _reason(self, how: int | str) -> str:
        """Return the reason of the end.

        The gateway's reason for a kill counts only if the kill ended the process, since the process may exit just
        before.
        """
        if isinstance(how, str):
            return how
        if how == -signal.SIGKILL and self._why:
            return self._why
        if how == 0 and self.is_stopping:
            return "stopped"
        is_own = not (self.has_begun and how in START_EXITS)
        return (is_own and EXIT_REASONS.get(how)) or describe_exit(how)


def describe_exit(status: int) -> str:
    """Describe an exit code, or minus the signal that ended the process."""
    if status >= 0:
        return f"its process ended with exit code {status}"
    try:
        return f"its process was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"its process was ended by signal {-status}"


class ProcessHealth:
    """The check whether a process that has not answered hangs; call `is_hanging` every `LOOK_PAUSE` seconds.

    On a busy host, a process may only be late: so the time counts in which the process could run, not its waiting for a
    processor or a disk. If the system does not report this time, all time counts.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._last = read_process(pid)
        self._had = self._stopped = 0.0

    def is_hanging(self) -> bool:
        last, now = self._last, read_process(self._pid)
        self._last = now
        self._had += LOOK_PAUSE if last is None or now is None else _count_time_had(last, now)
        self._stopped = self._stopped + LOOK_PAUSE if now and now.state in STOPPED else 0.0
        return self._had >= HANGING_AFTER or self._stopped >= STOPPED_AFTER


def _count_time_had(last: ProcessInfo, now: ProcessInfo) -> float:
    """Return the seconds since the last check in which the process could run."""
    return now.ran - last.ran if now.state in IS_WAITING_ITS_TURN else LOOK_PAUSE
