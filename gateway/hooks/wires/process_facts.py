"""What can be known of a worker from outside: its memory, its last trouble, and where it hangs."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PROGRAM_FOLDER = str(Path(__file__).resolve().parent / "process")
MAX_DUMP_BYTES = 64 << 10
MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes: in main memory, the fair share of it, and what is this process's alone."""

    rss: int
    pss: int
    private: int


@dataclass(frozen=True, slots=True)
class WorkerTrouble:
    """The last thing that went wrong; `at` is the wall clock."""

    at: float
    text: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """One look at a worker; `hangs` is the stack of each of its threads when it last was over its time."""

    pid: int
    started: float
    memory: MemoryUse | None
    calls: int
    trouble: WorkerTrouble | None
    hangs: str


def read_memory(pid: int) -> MemoryUse | None:
    """None where the system does not tell, or the process is gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
    private = kilobytes.get("Private_Dirty", 0) + kilobytes.get("Private_Clean", 0)
    return MemoryUse(kilobytes.get("Rss", 0) << 10, kilobytes.get("Pss", 0) << 10, private << 10)


class StackDumpFile:
    """A file in memory that a worker's interpreter writes its stacks to, by itself, even in the midst of C code."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("hook-stacks") if hasattr(os, "memfd_create") else _open_unnamed_file()
        self._seen = 0

    def read(self) -> str:
        """What was written since the last look."""
        data = os.pread(self.descriptor, MAX_DUMP_BYTES, self._seen)
        self._seen += len(data)
        if self._seen > MAX_FILE_BYTES:  # the offset is one for both ends
            os.ftruncate(self.descriptor, 0)
            self._seen = os.lseek(self.descriptor, 0, os.SEEK_SET)
        return "".join(_without_our_frames(data.decode("utf-8", "replace").splitlines(keepends=True)))

    def close(self) -> None:
        os.close(self.descriptor)


def _without_our_frames(lines: Iterable[str]) -> Iterator[str]:
    """Without the frames below the handler's: how it came to be called interests nobody."""
    was_foreign = is_below = False
    for line in lines:
        is_ours = PROGRAM_FOLDER in line
        if not line.startswith("  File"):
            was_foreign = is_below = False
        elif not is_ours:
            was_foreign = True
        is_below = is_below or (is_ours and was_foreign)
        if not is_below:
            yield line


def _open_unnamed_file() -> int:
    descriptor, name = tempfile.mkstemp()
    Path(name).unlink()
    return descriptor
