"""The verdict on jobs, in a simulation and on the daemon: counts by name, faults, and the moments that no row has."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.yaml_source.timetable import Interval, Timetable


@dataclass
class JobVerdict:
    """The ends of jobs: counts by name, and faults."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def count_row(self, state: str, moments: int) -> None:
        """Count a row of a history, which may tell of several moments."""
        self.counts["moments"] += moments
        self.counts[state] += moments


def judge_ends(what: str, states: Counter[str], answers: int) -> list[str]:
    """Return the faults of a history: each of its moments has an end, and each that ran has one answer."""
    faults = [f"without an end: {what}: {states['running']} moments"] if states["running"] else []
    if answers != states["ran"]:
        kind = "doubled" if answers > states["ran"] else "lost"
        faults.append(f"{kind}: {what}: {states['ran']} ran, {answers} answers")
    return faults


def list_lost(timetable: Timetable, begun: float, end: float, rows: Sequence[tuple[float, float]]) -> list[float]:
    """List the moments that no row has; those of an interval follow from the one before, so its gaps tell."""
    spans = sorted(rows)
    if isinstance(timetable, Interval):
        lost, reached = list[float](), begun
        for first, last in [*(one for one in spans if one[1] > begun), (end, end)]:
            lost += [reached] if first - reached > timetable.seconds + 1 else []
            reached = max(reached, last)
        return lost
    expected = list[float]()
    for due in timetable.times_after(begun):
        if due > end:
            break
        expected.append(due)
    return [due for due in expected if not any(first <= due <= last for first, last in spans)]
