"""Two hundred pages watch while people talk: none misses an event.

Each page hears all events, and asks every two seconds for what the overview shows, as long as something happens, as it
does in a browser. The gateway, with fifteen hooks, runs in this process; the pages and the people are another. *late*:
milliseconds by which the gateway's own loop wakes up later than it asked, as far as its process was busy meanwhile; so
many longer takes everything in it, in all but one of a thousand cases, and at worst. *by clock* counts beside what the
machine gave to other programs, such as the two hundred pages. *look*: until a page had what it asked for. *missed*:
events that a page was not told. With 200 pages *late* is within 10 ms of what it is without anybody; within 40 in the
short run, on whatever machine that is.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

import anyio

from bench.processes import memory
from gateway.testing import LiveGateway, gateway_in
from tests.proof_table import ROOT, Row, Trial
from tests.web.watchers import Told

COLUMNS = ("pages", "people", "turns", "events", "missed", "late", "worst", "by clock", "look", "MB")
WIDEST = 6
PAGES, PEOPLE = 200, 4
TICK = 0.002
MORE, MORE_IN_SHORT = 10, 40  # milliseconds that pages may add
HOOK = {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(event_type, context):\n    pass\n"}
HOOKS = {f"hook{number}": HOOK for number in range(15)}


class Late(NamedTuple):
    """Of one waking up: milliseconds by the clock, and of these the ones in which the process was busy."""

    by_clock: float
    own: float


@dataclass
class Stage:
    """The results of so many pages and so many people."""

    pages: int
    people: int
    told: Told
    lates: list[Late]
    megabytes: float

    @property
    def late(self) -> float:
        return most_of(late.own for late in self.lates)

    def row(self, allowed: float) -> Row:
        told = self.told
        counts = (self.people, told.turns, told.events, told.missed + told.gaps)
        clock = most_of(late.by_clock for late in self.lates)
        times = (self.late, max(late.own for late in self.lates), clock, most_of(told.looks) * 1000)
        cells = (str(self.pages), *map(str, counts), *(f"{one:.1f}" for one in times), f"{self.megabytes:.0f}")
        return Row(cells, tuple(self._list_faults(allowed)))

    def _list_faults(self, allowed: float) -> Iterator[str]:
        told = self.told
        if told.missed or told.gaps:
            yield f"{self.pages} pages: {told.missed} events were missed, {told.gaps} gaps told"
        if told.lines or told.unfinished:
            yield f"{self.pages} pages: {told.lines} lines broke, {told.unfinished} did not hear the last event"
        if told.refused or (self.pages and not told.looks):
            yield f"{self.pages} pages: {told.refused} answers were none, of {len(told.looks)}"
        if self.late > allowed:
            yield f"{self.pages} pages: the loop was {self.late:.1f} ms late, and {allowed:.1f} ms were allowed"


def prove(trial: Trial) -> Iterator[Row]:
    if trial.tree != ROOT:
        raise SystemExit("page has the gateway in its own process, so it tries this checkout alone")
    stages = anyio.run(watch, trial)
    allowed = stages[0].late + trial.amount(MORE, MORE_IN_SHORT)
    for stage in stages:
        yield stage.row(allowed)


async def watch(trial: Trial) -> list[Stage]:
    """Measure without users, then with people, then with pages too; and after they have left."""
    seconds, stages = trial.amount(60, 8), list[Stage]()
    async with gateway_in(trial.folder / "home", hooks=HOOKS) as gateway:
        gc.collect()
        gc.freeze()  # as the daemon does: what is there from the start is not walked through again
        for pages, people in ((0, 0), (0, PEOPLE), (PAGES, PEOPLE), (0, 0)):
            trial.tell(f"{pages} pages, {people} people")
            stages.append(await measure(gateway, pages, people, seconds if pages else min(seconds, 20)))
    return stages


async def measure(gateway: LiveGateway, pages: int, people: int, seconds: float) -> Stage:
    told = Told()
    if pages or people:
        socket = str(gateway.gateway.home.socket)
        command = [sys.executable, "-m", "tests.web.watchers", socket, str(pages), str(seconds), str(people)]
        async with await anyio.open_process(command, cwd=ROOT, stderr=None) as watchers:
            assert watchers.stdout
            assert await watchers.stdout.receive() == b"all watch\n"
            async with lateness() as lates:
                said = b"".join([part async for part in watchers.stdout])
        told = Told(**json.loads(said))
    else:
        async with lateness() as lates:
            await anyio.sleep(seconds)
    return Stage(pages, people, told, lates, memory([os.getpid()])[0])


@asynccontextmanager
async def lateness() -> AsyncIterator[list[Late]]:
    lates: list[Late] = []

    async def tick() -> None:
        while True:
            begun, busy = time.perf_counter(), time.process_time()
            await asyncio.sleep(TICK)
            late, busy = time.perf_counter() - begun - TICK, time.process_time() - busy
            lates.append(Late(late * 1000, min(late, busy) * 1000))

    task = asyncio.create_task(tick())
    try:
        yield lates
    finally:
        task.cancel()


def most_of(times: Iterable[float]) -> float:
    """Return the value below which all but one in a thousand are."""
    ordered = sorted(times)
    return ordered[len(ordered) * 999 // 1000] if ordered else 0.0
