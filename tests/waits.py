"""What other programs on the machine take from ours: a test that measures seconds is not to measure these."""

from pathlib import Path


def measure_wait(thread: str = "thread-self") -> float:
    """Seconds that this thread, or the main one of a process, could have run while others did."""
    told = Path("/proc", thread, "schedstat")
    return int(told.read_text().split()[1]) / 1e9 if told.exists() else 0.0


def measure_both_waits(pid: int) -> float:
    """Those of this thread, and of the process that answers it."""
    return measure_wait() + measure_wait(str(pid))
