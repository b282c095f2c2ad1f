"""A machine whose wall clock changes while the gateway runs on it: `python -m tests.chaos.machine CLOCK COMMAND`.

CLOCK is a file of two numbers of eight bytes: the seconds by which the wall clock is ahead, and those that have passed
for all clocks besides.
"""

import mmap
import runpy
import struct
import sys
import time
from pathlib import Path

HANDS = struct.Struct("dd")
UPTIME = 1e8  # seconds; a machine whose clocks are set back has run for years, so its steady clock is not below zero


def set_clock(path: Path, ahead: float, passed: float = 0.0) -> None:
    """Another process does this."""
    if not path.exists():
        path.write_bytes(HANDS.pack(ahead, passed))
    with path.open("r+b", buffering=0) as file:
        file.write(HANDS.pack(ahead, passed))


def main() -> None:
    wall, steady, other = time.time, time.monotonic, time.clock_gettime
    with Path(sys.argv.pop(1)).open("rb") as file:
        hands = mmap.mmap(file.fileno(), HANDS.size, prot=mmap.PROT_READ)
    uptime = UPTIME if HANDS.unpack(hands)[1] < 0 else 0.0
    time.time = lambda: wall() + sum(HANDS.unpack(hands))
    time.monotonic = lambda: steady() + uptime + HANDS.unpack(hands)[1]
    time.clock_gettime = lambda clock: other(clock) + uptime + HANDS.unpack(hands)[1]
    runpy.run_module("gateway.cli", run_name="__main__")


if __name__ == "__main__":
    main()
