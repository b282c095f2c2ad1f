"""Kills and stops a gateway at random instants until it has had enough, lets it finish, and judges what it left."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import anyio

from gateway.engine.sqlite.engine import open_sqlite
from gateway.testing.patience import Patience
from tests.audit import Audit, audit

ROOT = Path(__file__).parents[2]
LONGEST = 120.0


@dataclass
class Siege:
    """How often it was hit, and what the journal and the network say afterwards."""

    kills: int
    stops: int
    found: Audit
    shown: list[str]
    effects: list[str]

    @property
    def shown_twice(self) -> int:
        return sum(count - 1 for count in Counter(line.split()[3] for line in self.shown).values())

    @property
    def done_twice(self) -> int:
        return len(self.effects) - len(set(self.effects))

    @property
    def is_in_order(self) -> bool:
        """Return True if each chat first showed the parts in the journal's order."""
        first: dict[str, list[tuple[str, int]]] = {}
        for line in self.shown:
            chat, reply, part, _ = line.split()
            seen = first.setdefault(chat, [])
            if (reply, int(part)) not in seen:
                seen.append((reply, int(part)))
        return all(
            [part for reply, part in seen] == [n for one in runs(seen) for n in range(one)] for seen in first.values()
        )


def runs(seen: list[tuple[str, int]]) -> list[int]:
    """How many parts each reply has, in the order in which the replies began."""
    counts = Counter(reply for reply, _ in seen)
    return [counts[reply] for reply in dict.fromkeys(reply for reply, _ in seen)]


def besiege(folder: Path, messages: int, conversations: int, kills: int, seed: int) -> Siege:
    chance, killed, stopped = random.Random(seed), 0, 0
    command = [sys.executable, "-m", "tests.chaos.victim", str(folder), str(messages), str(conversations)]
    patience = Patience(LONGEST)
    while not (folder / "over").exists():
        assert not patience.is_over(), f"not over after {LONGEST} s; {killed} kills"
        victim = subprocess.Popen(command, cwd=ROOT)
        try:
            wait_for_start(folder, victim)
            if killed >= kills:
                assert victim.wait() == 0
                continue
            time.sleep(chance.uniform(0, 0.3))
            if chance.random() < 0.2:
                stopped += pause(victim)
            victim.send_signal(signal.SIGKILL)
            killed += 1
        finally:
            victim.kill()
            victim.wait()
    return Siege(killed, stopped, anyio.run(judged, folder), lines(folder / "shown"), lines(folder / "effects"))


async def judged(folder: Path) -> Audit:
    async with await open_sqlite(folder / "journal.db") as engine:
        return await audit(engine, is_sent=True)


def wait_for_start(folder: Path, victim: "subprocess.Popen[bytes]") -> None:
    while str(victim.pid) not in [line.split()[0] for line in lines(folder / "starts")]:
        assert victim.poll() is None, "it did not even start"
        time.sleep(0.005)


def pause(victim: "subprocess.Popen[bytes]") -> int:
    """Longer than its lease, then on."""
    victim.send_signal(signal.SIGSTOP)
    time.sleep(1.1)
    victim.send_signal(signal.SIGCONT)
    time.sleep(0.05)
    return 1


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
