"""Jobs: each due moment has one end, whatever happens.

- *seeds*: the real lanes, outbox and jobs run on the journal in memory under a virtual clock. The gateway is killed
  between any two steps, and its wall clock is set: by minutes, hours, days and a month. People write meanwhile. At the
  end the journal is read: each message has one answer, each due moment one end, and the network has shown each reply
  once. A seed gives the same journal to the last byte, so a fault names the command that repeats it.
- *weeks*: there, 1,000 jobs of 25 makers run for the weeks in which summer time begins in three zones, and for those in
  which it ends.
- *daemon*: for ten minutes the daemon is killed and stopped, its clock is set and its disk is full, while jobs come
  every other second and others each minute. Their answers go to Discord's server on loopback. What the chat shows and
  the histories of the jobs are compared.

The short run is ten seeds of 50 messages and 20 jobs, and the daemon for some seconds; it leaves the weeks out.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio

from tests.proof_table import ROOT, Row, Trial, make_row, try_whole
from tests.siege.jobs import JobSiege, besiege_jobs

COLUMNS = ("what", "promised", "came")
WIDEST = 44
FAULTS = ("lost", "doubled", "without an end")
SHORT_SIEGE = JobSiege(seconds=10, repeated=4, kills=3, stops=1, jumps=2, fills=1, longest=8)
DEEDS = {
    "jobs": "jobs",
    "kills": "kill_daemon",
    "SIGTERM": "stop_daemon",
    "clock set": "set_the_clock",
    "disk full": "fill_the_disk",
}


def prove(trial: Trial) -> Iterator[Row]:
    if trial.tree != ROOT:
        raise SystemExit("jobs simulates the rooms themselves, so it tries this checkout alone")
    for name in trial.parts or (*PARTS,):
        yield from try_whole(name, COLUMNS, PARTS[name], trial)


def prove_seeds(trial: Trial) -> Iterator[Row]:
    return prove_plan(trial, "tiny", range(1, 11)) if trial.is_short else prove_plan(trial, "days", range(1, 201))


def prove_weeks(trial: Trial) -> Iterator[Row]:
    for plan in () if trial.is_short else ("spring", "autumn"):
        yield from prove_plan(trial, plan, [1])


def prove_daemon(trial: Trial) -> Iterator[Row]:
    """Show what happened to the daemon, and what came of each moment."""
    plan = SHORT_SIEGE if trial.is_short else JobSiege()
    found = anyio.run(besiege_jobs, plan, trial.folder, trial.tell)
    counts = found.counts
    for what, deed in DEEDS.items():
        yield make_row(f"daemon: {what}", "", str(counts[deed]))
    yield from list_ends("daemon", counts, found.faults)


def prove_plan(trial: Trial, plan: str, seeds: Sequence[int]) -> Iterator[Row]:
    """Simulate these seeds, one on each processor at a time."""
    counts, faults, digests = Counter[str](), list[str](), dict[int, str]()
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for came in threads.map(simulate, [plan] * len(seeds), seeds):
            seed = came["seed"]
            trial.tell(f"{plan}: seed {seed} of {len(seeds)}")
            counts.update(came["counts"])
            digests[seed] = came["digest"]
            faults += [f"{one}; again: {describe_command(plan, seed)}" for one in came["faults"]]
    for what in ("messages", "jobs", "kills", "jumps"):
        yield make_row(f"{plan}: {what}", "", str(counts[what]))
    yield from list_ends(plan, counts, faults)
    again = simulate(plan, seeds[0])["digest"]
    yield make_row(f"{plan}: seed {seeds[0]} again", digests[seeds[0]], again, again == digests[seeds[0]])


def list_ends(plan: str, counts: Counter[str], faults: list[str]) -> Iterator[Row]:
    """Show how many moments were due, how they ended, and what was not as it should be."""
    ended = sum(counts[state] for state in ("ran", "skipped", "failed", "missed"))
    yield make_row(f"{plan}: due moments", str(counts["moments"]), str(ended), ended == counts["moments"])
    yield make_row(f"{plan}: of them ran", "> 0", str(counts["ran"]), counts["ran"] > 0)
    for kind in FAULTS:
        yield from list_faults(f"{plan}: {kind}", [one for one in faults if one.startswith(kind)])
    yield from list_faults(f"{plan}: other faults", [one for one in faults if not one.startswith(FAULTS)])


def list_faults(what: str, found: list[str]) -> Iterator[Row]:
    yield Row((what, "0", str(len(found))), tuple(found[:5]))


def simulate(plan: str, seed: int) -> dict[str, Any]:
    """Simulate a seed in a process of its own, whose clocks are virtual."""
    command = [sys.executable, "-m", "tests.simulation", plan, str(seed)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True)
    if not done.stdout:
        raise OSError(f"{describe_command(plan, seed)} ended with {done.returncode}: {done.stderr[-500:]}")
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def describe_command(plan: str, seed: int) -> str:
    return f"PYTHONHASHSEED=0 python -m tests.simulation {plan} {seed}"


PARTS: dict[str, Callable[[Trial], Iterator[Row]]] = {
    "seeds": prove_seeds,
    "weeks": prove_weeks,
    "daemon": prove_daemon,
}
