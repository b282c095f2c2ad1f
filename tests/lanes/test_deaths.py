"""A turn that kills the process is identified and given up; turns beside it are answered."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from gateway.engine.sqlite.engine import open_sqlite
from gateway.lanes.lanes import make_inbound_put
from tests.audit import audit
from tests.lanes.desk import QUICK
from tests.spine import chain, key, message, replies

ROOT = Path(__file__).parents[2]
INNOCENT = [f"i{number}" for number in range(30)]


async def say(folder: Path, **said: str) -> None:
    """Everybody says something before the first process begins: chat -> text."""
    async with await open_sqlite(folder / "journal.db") as engine:
        await engine.append(*(make_inbound_put(message(text, chat), key(chat), "", 1.0) for chat, text in said.items()))


def live(folder: Path, most: int) -> list[int]:
    """Start it until everything is answered; how each life ended."""
    ends: list[int] = []
    while ends[-1:] != [0]:
        assert len(ends) <= most, f"still not over: {ends}"
        command = [sys.executable, "-m", "tests.lanes.mortal", str(folder)]
        ends.append(subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode)
    return ends


@pytest.mark.process
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("poison", "fewest", "most"),
    [("crash", 4, 4), ("side by side", 4, 4), ("thread", 4, 6)],
    ids=["crash", "beside", "thread"],
)
async def test_the_one_that_kills_is_given_up_and_those_beside_it_are_answered(
    tmp_path: Path, poison: str, fewest: int, most: int
) -> None:
    """A thread ends the process at any instant: by chance in one that is marked, and counts sooner."""
    await say(tmp_path, **dict.fromkeys(INNOCENT, "hello"), p=poison)
    ends = await anyio.to_thread.run_sync(live, tmp_path, most + 1)
    assert fewest < len(ends) <= most + 1
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        assert (await audit(engine)).faults == []
        assert [await replies(engine, chat) for chat in INNOCENT] == [["re hello"]] * len(INNOCENT)
        assert await replies(engine, "p") == [QUICK.apology]
        (dead,) = await chain(engine, "gw.dead.turns.*")
    assert (dead.attempts, dead.reason) == (4, "the gateway ended during it each time")


@pytest.mark.process
@pytest.mark.timeout(240)
async def test_of_two_that_kill_each_is_given_up(tmp_path: Path) -> None:
    await say(tmp_path, **dict.fromkeys(INNOCENT, "hello"), p="crash", q="memory")
    await anyio.to_thread.run_sync(live, tmp_path, 8)  # four each: no death is forgotten while the other one kills
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        assert (await audit(engine)).faults == []
        assert [await replies(engine, chat) for chat in INNOCENT] == [["re hello"]] * len(INNOCENT)
        assert [await replies(engine, chat) for chat in "pq"] == [[QUICK.apology]] * 2
