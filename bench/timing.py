"""Measure a statement on the loop beside another one in the same process, with the standard library alone.

It counts processor time, so that other work on the machine does not count.
"""

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Run = Callable[[int], Awaitable[float]]

_LOOP = """
async def timed(_count, _clock, {names}):
    _began = _clock()
    for _ in range(_count):
        {statement}
    return _clock() - _began
"""


def loop(statement: str, names: Mapping[str, Any], drain: str = "", batch: int = 100) -> Run:
    """The seconds that n runs of the statement take; with `drain`, in batches, and what is done between uncounted."""
    timed = _compiled(statement, names)
    emptied = _compiled(drain, names) if drain else None

    async def run(count: int) -> float:
        if emptied is None:
            return await timed(count)
        total = 0.0
        for begin in range(0, count, batch):
            total += await timed(min(batch, count - begin))
            await emptied(1)
        return total

    return run


def _compiled(statement: str, names: Mapping[str, Any]) -> Run:
    scope: dict[str, Any] = {}
    source = _LOOP.format(names=", ".join(names), statement=statement.replace("\n", "\n        "))
    exec(compile(source, "<bench>", "exec"), scope)

    async def timed(count: int) -> float:
        return float(await scope["timed"](count, time.thread_time, *names.values()))

    return timed


async def beside(runs: Mapping[str, Run], rounds: int, seconds: float = 0.02) -> dict[str, float]:
    """The median seconds of one run of each, taken in turn."""
    counts = {name: await _count(run, seconds) for name, run in runs.items()}
    found: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        gc.collect()
        gc.disable()
        for name in runs if number % 2 else reversed(list(runs)):
            found[name].append(await runs[name](counts[name]) / counts[name])
        gc.enable()
    return {name: statistics.median(times) for name, times in found.items()}


async def _count(run: Run, seconds: float) -> int:
    count = 100
    while (took := await run(count)) < seconds:
        count = int(count * min(10, 1.2 * seconds / max(took, 1e-9))) + 1
    return count
