"""kill -9 in the middle of load: acknowledged records are there, whole, and pending ones are still pending."""

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.engine.interface import ConsumerSpec, Engine, Record
from gateway.engine.sqlite.engine import open_sqlite

LOAD = Path(__file__).with_name("load.py")
ROOT = Path(__file__).parents[2]


@dataclass
class Acknowledged:
    """What the journal acknowledged to the processes before they died."""

    kept: list[tuple[int, int]] = field(default_factory=list)
    attempts: Counter[int] = field(default_factory=Counter)
    done: set[int] = field(default_factory=set)

    def note(self, line: str) -> None:
        match line.split():
            case ["kept", first, second]:
                self.kept.append((int(first), int(second)))
            case ["got", seq, attempt]:
                # Each delivery is a new attempt; a process that died between the commit and the word may have had one.
                assert int(attempt) > self.attempts[int(seq)]
                assert int(seq) not in self.done
                self.attempts[int(seq)] = int(attempt)
            case ["done", seq]:
                self.done.add(int(seq))


def live_and_die(path: Path, life: int, lines: int, heard: Acknowledged) -> None:
    """Run the load, and kill it once it has said so many lines."""
    with subprocess.Popen(
        [sys.executable, str(LOAD), str(path), str(life)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        for _ in range(lines):
            heard.note(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        for line in process.stdout:
            # The last line may be cut off; it is not a word then.
            if line.endswith("\n"):
                heard.note(line)


async def everything(engine: Engine, pattern: str) -> list[Record]:
    found: list[Record] = []
    while portion := await engine.read(pattern, after=found[-1].seq if found else 0, limit=5000):
        found += portion
    return found


@pytest.mark.process
async def test_nothing_acknowledged_is_lost_and_nothing_is_there_in_part(path: Path) -> None:
    heard = Acknowledged()
    for life in range(4):
        live_and_die(path, life, 150 + 331 * life, heard)
    assert heard.kept
    assert heard.done
    assert max(heard.attempts.values()) > 1
    async with await open_sqlite(path) as engine:
        ins, outs = await everything(engine, "in.*"), await everything(engine, "out.*")
        assert {seq for pair in heard.kept for seq in pair} <= {record.seq for record in (*ins, *outs)}
        assert [record.data for record in ins] == [record.data for record in outs]
        assert len({record.data for record in ins}) == len(ins)
        assert [left.seq + 1 for left in ins] == [right.seq for right in outs]

        owed = {record.seq for record in ins} - heard.done
        consumer = await engine.consumer(ConsumerSpec("reader", ("in.*",), max_inflight=1_000_000))
        found = []
        while portion := await consumer.fetch(1000, 0):
            found += portion
        # An acknowledgement may stand though the process died before it could say so.
        assert {delivery.record.seq for delivery in found} <= owed
        unsaid = owed - {delivery.record.seq for delivery in found}
        assert unsaid <= heard.attempts.keys()
        assert all(delivery.attempt > heard.attempts[delivery.record.seq] for delivery in found)
