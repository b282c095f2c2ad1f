"""A disk of which one call fails, once: what becomes of the journal on it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gateway.engine.sqlite.backup import verify_journal
from gateway.engine.sqlite.engine import open_sqlite
from tests.engine.io_script import MESSAGES

HERE = Path(__file__).parent
KINDS = ("EIO", "ENOSPC", "kill")
LIMIT = 60.0
NO_COMPILER = "there is no C compiler here: install gcc"


def run_script(journal: Path, *options: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.engine.io_script", str(journal), *options]
    environ = {**os.environ, **environ}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=LIMIT)


@dataclass(frozen=True)
class FaultyDisk:
    """A library between SQLite and the system, and the number of calls that it saw in one run."""

    library: Path
    calls: int = 0

    def environ_of(self, at: int, kind: str) -> dict[str, str]:
        """In a process with this environment the call of this number fails."""
        return {"LD_PRELOAD": str(self.library), "FAULT_AT": str(at), "FAULT_AS": kind}

    def counting(self, file: Path) -> dict[str, str]:
        """A process with this environment writes into the file how many calls it made."""
        return {"LD_PRELOAD": str(self.library), "FAULT_COUNT": str(file)}


def make_faulty_disk(folder: Path) -> FaultyDisk | None:
    """Build the library; None without a compiler."""
    if not (compiler := shutil.which("cc")):
        return None
    library, count = folder / "io_faults.so", folder / "count"
    source = str(HERE / "io_faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), source, "-ldl"], check=True)
    disk = FaultyDisk(library)
    whole = run_script(folder / "journal.db", **disk.counting(count))
    assert whole.stdout.split() == [str(number) for number in range(MESSAGES)]
    return FaultyDisk(library, int(count.read_text()))


class ForkedScripts:
    """The script on a faulty disk again and again: to start Python each time takes longer than all that it does."""

    def __init__(self, disk: FaultyDisk) -> None:
        command, environ = [sys.executable, "-m", "tests.engine.io_script"], {**os.environ, **disk.environ_of(0, "")}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, env=environ, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> "ForkedScripts":
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.communicate()

    def run(self, journal: Path, at: int, kind: str) -> tuple[int, str]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([str(journal), at, kind]) + "\n")
        self._process.stdin.flush()
        code, written = json.loads(self._process.stdout.readline())
        return code, written


async def find_fault(scripts: ForkedScripts, journal: Path, at: int, kind: str) -> str:
    """Return the fault after a run in which this call failed; "" without one."""
    code, written = scripts.run(journal, at, kind)
    acknowledged = [int(number) for number in written.split()]
    if kind == "kill" and code != -signal.SIGKILL:
        return "the call was never made"
    if kind != "kill" and code == 0 and len(acknowledged) < MESSAGES:
        return "it gave up"
    return await find_loss(journal, acknowledged)


async def find_loss(journal: Path, acknowledged: list[int]) -> str:
    if aside := [path.name for path in journal.parent.glob("*.damaged-*") if acknowledged]:
        return f"set aside: {aside}"
    async with await open_sqlite(journal) as engine:
        kept = [int(record.data) for record in await engine.read("a.x", 0, 100)]
        warnings = (await engine.health()).warnings
    if damaged := verify_journal(journal).damaged:
        return f"damaged: {damaged}"
    is_whole = kept == sorted(set(kept)) and set(acknowledged) <= set(kept)
    return "" if is_whole and not warnings else f"acknowledged {acknowledged}, kept {kept}, said {warnings}"
