"""Each call by which the journal reads and writes fails once: what was acknowledged is there, once, in order."""

import os
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from gateway.engine import open_sqlite
from gateway.engine.sqlite.backup import verify_journal
from tests.engine.io_script import MESSAGES

pytestmark = pytest.mark.thorough
HERE = Path(__file__).parent
KINDS = ("EIO", "ENOSPC", "kill")
TRIED = 100
HEAP_STEPS = 40
LIMIT = 60.0


def run_script(journal: Path, *options: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.engine.io_script", str(journal), *options]
    environ = {**os.environ, **environ}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=LIMIT)


@dataclass(frozen=True)
class FaultyDisk:
    """A library that lies between SQLite and the system, and how many calls of one run it has seen."""

    library: Path
    calls: int = 0

    def run(self, journal: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
        return run_script(journal, LD_PRELOAD=str(self.library), **environ)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> FaultyDisk:
    if not (compiler := shutil.which("cc")):
        pytest.skip("there is no C compiler here: install gcc")
    folder = tmp_path_factory.mktemp("disk")
    library, count = folder / "io_faults.so", folder / "count"
    source = str(HERE / "io_faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), source, "-ldl"], check=True)
    whole = FaultyDisk(library).run(folder / "journal.db", FAULT_COUNT=str(count))
    assert whole.stdout.split() == [str(number) for number in range(MESSAGES)]
    return FaultyDisk(library, int(count.read_text()))


async def find_fault(disk: FaultyDisk, journal: Path, at: int, kind: str) -> str:
    """What is wrong after a run in which this call failed; "" where nothing is."""
    said = disk.run(journal, FAULT_AT=str(at), FAULT_AS=kind)
    acknowledged = [int(number) for number in said.stdout.split()]
    if kind == "kill" and said.returncode != -signal.SIGKILL:
        return "the call was never made"
    if kind != "kill" and said.returncode == 0 and len(acknowledged) < MESSAGES:
        return f"it gave up: {said.stderr[-500:]}"
    return await find_loss(journal, acknowledged)


async def find_loss(journal: Path, acknowledged: list[int]) -> str:
    async with await open_sqlite(journal) as engine:
        kept = [int(record.data) for record in await engine.read("a.x", 0, 100)]
        warnings = (await engine.health()).warnings
    if damaged := verify_journal(journal).damaged:
        return f"damaged: {damaged}"
    is_whole = kept == sorted(set(kept)) and set(acknowledged) <= set(kept)
    return "" if is_whole and not warnings else f"acknowledged {acknowledged}, kept {kept}, said {warnings}"


async def test_no_call_that_fails_loses_a_message_or_doubles_it(disk: FaultyDisk, tmp_path: Path) -> None:
    runs = random.Random(39).sample([*product(range(1, disk.calls + 1), KINDS)], TRIED)
    found = {}
    for number, (at, kind) in enumerate(runs):
        folder = tmp_path / str(number)
        folder.mkdir()
        if fault := await find_fault(disk, folder / "journal.db", at, kind):
            found[at, kind] = fault
    assert found == {}


async def test_no_want_of_memory_loses_a_message_or_doubles_it(tmp_path: Path) -> None:
    found, counts = {}, set()
    for step in range(HEAP_STEPS):
        journal, heap = tmp_path / str(step) / "journal.db", 40_000 * (step + 1)
        acknowledged = [int(number) for number in run_script(journal, str(heap)).stdout.split()]
        counts.add(len(acknowledged))
        if fault := await find_loss(journal, acknowledged):
            found[heap] = fault
    assert found == {}
    assert {0, MESSAGES} <= counts, "from far too little to enough"
