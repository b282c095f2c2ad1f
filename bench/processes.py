"""Measure a started program: time until it is ready, memory of all its processes, time until it is gone."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PATIENCE = 60.0
Ready = Callable[[], bool]


class Memory(NamedTuple):
    """Megabytes: resident, counted for each process; proportional, where what is shared counts once; without files."""

    rss: float
    pss: float
    anon: float


@dataclass(frozen=True, slots=True)
class Life:
    """One run of a daemon: seconds, and megabytes of all its processes together while it had nothing to do."""

    ready: float
    stop: float
    rss: float
    pss: float
    anon: float
    processes: int
    modules: int


@contextlib.contextmanager
def notified(path: Path) -> Iterator[Ready]:
    """Tell if READY=1 has come to the datagram socket at `path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox:
        inbox.bind(str(path))
        inbox.settimeout(0.001)

        def ready() -> bool:
            with contextlib.suppress(TimeoutError):
                return b"READY=1" in inbox.recv(4096).split(b"\n")
            return False

        yield ready
    path.unlink()


def live(command: Sequence[str], environment: Mapping[str, str], ready: Ready, said: Path, idle: float) -> Life:
    """Start it, let it be idle for a while, stop it with SIGTERM."""
    with said.open("wb") as output:
        begun = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        try:
            wait(ready, process, said)
            took = time.perf_counter() - begun
            time.sleep(idle)
            family = [process.pid, *descendants(process.pid)]
            found = memory(family)
            stopping = time.perf_counter()
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
            stopped = time.perf_counter() - stopping
        finally:
            for pid in [process.pid, *descendants(process.pid)] if process.poll() is None else []:
                os.kill(pid, signal.SIGKILL)
    modules = said.read_bytes().count(b"import time:")
    return Life(took, stopped, *found, len(family), modules)


def wait(ready: Ready, process: subprocess.Popen[bytes], said: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"it never became ready (exit code {process.poll()}):\n{said.read_text(errors='replace')}")


def descendants(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        threads = Path(f"/proc/{pid}/task").iterdir()
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
        return [found for child in children for found in (child, *descendants(child))]
    return []


def processor_seconds(pids: Sequence[int]) -> float:
    """Return the processor time of these so far, also of threads that have ended."""
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)  # the clock that clock_getcpuclockid(3) gives


def memory(pids: Sequence[int]) -> Memory:
    totals = {"Rss": 0, "Pss": 0, "Pss_Anon": 0}
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in totals:
                    totals[name] += int(value.split()[0])
    return Memory(*(total / 1024 for total in totals.values()))


def seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """How long a command that ends by itself takes; that no gateway runs (exit code 3) is no reason to stop."""
    begun = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(command)} ends with {done.returncode}:\n{done.stderr}")
    return time.perf_counter() - begun
