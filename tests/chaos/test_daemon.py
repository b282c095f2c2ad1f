"""The real daemon, on a disk that fills up, and with a message that kills it; `./x prove journal` is a longer siege."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from gateway.config.home import Home
from tests.chaos.daemon import GLANCE, ROOT, Plan, Siege, besiege, is_given_up, question, right_answer
from tests.chaos.people import Typist

pytestmark = pytest.mark.process


def judged(siege: Siege) -> None:
    """Everything is answered once and in order; what the network has twice is explained."""
    plan = siege.plan
    assert siege.found.faults == []
    assert siege.found.inbound == plan.said
    assert siege.unanswered() == []
    assert siege.given_up() == 0, "killed from outside, no turn is to blame"
    assert sum(len(typist.answers) for typist in siege.typists) == plan.typists * plan.each
    assert siege.unexplained() == []
    assert siege.done["kills"] == plan.kills
    # Telegram can neither be asked nor told a nonce: a kill leaves a doubt about the calls that were under way.
    assert siege.twice() <= plan.kills * 8


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"only root can mount a small disk: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.machine
@pytest.mark.timeout(120)
async def test_on_a_disk_that_fills_up_and_is_killed_it_loses_nothing(small_disk: Path) -> None:
    plan = Plan(chats=20, typists=20, each=6, kills=6, seed=3, ballast=small_disk / "ballast")
    siege = await besiege(small_disk / "home", plan)
    judged(siege)
    assert siege.done["fills"] >= 1
    assert any("no room" in one for one in siege.seen)
    assert "open" in siege.seen


@pytest.mark.timeout(240)
async def test_a_message_that_kills_it_is_given_up_and_nobody_else_is(tmp_path: Path) -> None:
    """Somebody asks what the gateway dies of, each time; everybody else is answered, within a few starts."""
    home, starts = Home(tmp_path / "home"), 0
    typists = [Typist(number, home.socket) for number in range(12)]
    texts = {typist.number: [question(typist.number, at)[0] for at in range(3)] for typist in typists}
    poisoned, innocent = typists[7], [typist for typist in typists if typist.number != 7]
    texts[7] = ["what is 666666 + 1"]
    async with anyio.create_task_group() as tasks, anyio.create_task_group() as people:
        for typist in typists:
            people.start_soon(typist.talk, texts[typist.number], 0.0)

        async def keep_alive() -> None:
            nonlocal starts
            while True:
                starts += 1
                command = [sys.executable, "-m", "tests.chaos.mortal", str(home.root), "666666"]
                await anyio.run_process(command, cwd=ROOT, check=False)

        tasks.start_soon(keep_alive)
        while any(len(one.answers) < len(texts[one.number]) for one in typists):  # noqa: ASYNC110 - nobody tells us
            await anyio.sleep(GLANCE)
        tasks.cancel_scope.cancel()
    assert [answer["status"] for answer in poisoned.answers.values()] == ["failed"]
    assert is_given_up(poisoned.answers["typist7-0"])
    for typist in innocent:
        assert all(right_answer(typist, name) in answer["reply"] for name, answer in typist.answers.items())
    assert starts == 5
