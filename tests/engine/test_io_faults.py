"""Each call by which the journal reads and writes fails once: what was acknowledged is there, once, in order."""

import random
import shutil
from itertools import product
from pathlib import Path

import pytest

from tests.engine.faulty_disk import (
    KINDS,
    NO_COMPILER,
    FaultyDisk,
    ForkedScripts,
    find_fault,
    find_loss,
    make_faulty_disk,
    run_script,
)
from tests.engine.io_script import MESSAGES

pytestmark = pytest.mark.thorough
TRIED = 100
HEAP_STEPS = 40
STARTING = 40  # calls


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> FaultyDisk:
    return make_faulty_disk(tmp_path_factory.mktemp("disk")) or pytest.skip(NO_COMPILER)


async def test_no_call_that_fails_loses_a_message_or_doubles_it(disk: FaultyDisk, tmp_path: Path) -> None:
    runs = random.Random(39).sample([*product(range(1, disk.calls + 1), KINDS)], TRIED)
    found = {}
    with ForkedScripts(disk) as scripts:
        for number, (at, kind) in enumerate(runs):
            folder = tmp_path / str(number)
            folder.mkdir()
            if fault := await find_fault(scripts, folder / "journal.db", at, kind):
                found[at, kind] = fault
    assert found == {}


async def test_no_call_that_fails_at_a_start_takes_a_journal_away(disk: FaultyDisk, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    assert run_script(tmp_path / "whole" / "journal.db").returncode == 0
    found = {}
    with ForkedScripts(disk) as scripts:
        for at, kind in product(range(1, STARTING + 1), ("EIO", "kill")):
            folder = tmp_path / f"{at}{kind}"
            shutil.copytree(tmp_path / "whole", folder)
            scripts.run(folder / "journal.db", at, kind)
            if fault := await find_loss(folder / "journal.db", [*range(MESSAGES)]):
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
