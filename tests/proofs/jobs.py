"""Jobs in a simulation: each due moment has one end, whatever happens.

The real lanes, outbox and jobs run on the journal in memory under a virtual clock. The gateway is killed between any
two steps, and its wall clock is set: by minutes, hours, days and a month. People write meanwhile. At the end the
journal is read: each message has one answer, each due moment one end, and the network has shown each reply once. Then
1,000 jobs of 25 makers run for four weeks in which summer time begins in three zones, and for four in which it ends.

A seed gives the same journal to the last byte, so a fault names the command that repeats it. The short run is ten
seeds of 50 messages and 20 jobs; it leaves the four weeks out.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.proof_table import ROOT, Row, Trial, make_row

COLUMNS = ("what", "promised", "came")
WIDEST = 44
FAULTS = ("lost", "doubled", "without an end")


def prove(trial: Trial) -> Iterator[Row]:
    if trial.tree != ROOT:
        raise SystemExit("jobs simulates the rooms themselves, so it tries this checkout alone")
    if trial.is_short:
        yield from prove_plan(trial, "tiny", range(1, 11))
    else:
        yield from prove_plan(trial, "days", range(1, 201))
        yield from prove_plan(trial, "spring", [1])
        yield from prove_plan(trial, "autumn", [1])


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
    ended = sum(counts[state] for state in ("ran", "skipped", "failed", "missed"))
    yield make_row(f"{plan}: due moments", str(counts["moments"]), str(ended), ended == counts["moments"])
    yield make_row(f"{plan}: of them ran", "> 0", str(counts["ran"]), counts["ran"] > 0)
    for kind in FAULTS:
        yield from list_faults(f"{plan}: {kind}", [one for one in faults if one.startswith(kind)])
    yield from list_faults(f"{plan}: other faults", [one for one in faults if not one.startswith(FAULTS)])
    again = simulate(plan, seeds[0])["digest"]
    yield make_row(f"{plan}: seed {seeds[0]} again", digests[seeds[0]], again, again == digests[seeds[0]])


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
