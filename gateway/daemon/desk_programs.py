"""The programs on the desk that have asked, by their processes: what descends from one may not approve itself.

A file keeps them while the gateway restarts, and counts until the host does.
"""

from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec

from gateway.hooks.places.switches import read_json, write_atomically
from gateway.threads import run_in_thread
from gateway.turn_marks import read_boot_id
from gateway.worker.process_tree import ProcessInfo, read_process


class KeptPrograms(msgspec.Struct, frozen=True):
    """The file: the number, the start and the name of each process, of one start of the host."""

    boot: str = ""
    programs: tuple[tuple[int, int, str], ...] = ()


class DeskPrograms:
    """The processes of connected programs."""

    def __init__(self, path: Path) -> None:
        self._path, self._boot, self._lock = path, read_boot_id().decode(), anyio.Lock()
        kept = read_json(path, KeptPrograms, KeptPrograms())
        self._names = {(pid, began): name for pid, began, name in kept.programs if kept.boot == self._boot}

    async def add(self, processes: Sequence[ProcessInfo], name: str) -> None:
        """Add the processes of a program, and remove those that have ended."""
        fresh = {key: name for one in processes if (key := (one.pid, one.started)) not in self._names}
        if not fresh:
            return
        self._names |= fresh  # they count from now on; the file is for the next gateway
        async with self._lock:
            for pid, began in list(self._names):
                if (known := read_process(pid)) is None or known.started != began:
                    self._names.pop((pid, began), None)
            kept = KeptPrograms(self._boot, tuple((*one, name) for one, name in self._names.items()))
            await run_in_thread(write_atomically, self._path, msgspec.json.encode(kept))

    def find(self, ancestors: Sequence[int]) -> str:
        """Return the connected program that started these processes; "" if no connected program did."""
        found = (read_process(pid) for pid in ancestors) if self._names else ()
        return next((name for one in found if one and (name := self._names.get((one.pid, one.started)))), "")
