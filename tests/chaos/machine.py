"""A machine whose wall clock somebody sets while the gateway runs on it: `python -m tests.chaos.machine CLOCK COMMAND`.

CLOCK is a file of eight bytes, the seconds by which the clock is ahead.
"""

import mmap
import runpy
import struct
import sys
import time
from pathlib import Path

HANDS = struct.Struct("d")


def set_clock(path: Path, ahead: float) -> None:
    """Another process does this."""
    if not path.exists():
        path.write_bytes(HANDS.pack(ahead))
    with path.open("r+b", buffering=0) as file:
        file.write(HANDS.pack(ahead))


def main() -> None:
    right = time.time
    with Path(sys.argv.pop(1)).open("rb") as file:
        hands = mmap.mmap(file.fileno(), HANDS.size, prot=mmap.PROT_READ)
    time.time = lambda: right() + HANDS.unpack(hands)[0]
    runpy.run_module("gateway.cli", run_name="__main__")


if __name__ == "__main__":
    main()
