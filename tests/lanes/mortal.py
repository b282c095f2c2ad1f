"""Lanes in a process that some of its turns kill: `python -m tests.lanes.mortal FOLDER`.

It answers every message of the journal in FOLDER and ends by itself; until then whoever started it starts it again.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

import anyio
import anyio.to_thread

from gateway.engine.sqlite.engine import open_sqlite
from gateway.lanes.lanes import Lanes
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.steps import LlmStep
from gateway.messages.transcript import Entry
from gateway.sessions.repository import SessionRepository
from gateway.turn_marks import TurnMarks, keep_mark, watch_steps
from tests.audit import audit
from tests.lanes.desk import QUICK, echo


async def work(turn: LaneTurn) -> LaneResult:
    """Do what the message says; each innocent turn runs for a while, waits, and records steps."""
    match turn.messages[0].text:
        case "crash":
            await anyio.sleep(0.01)
            ctypes.string_at(0)
        case "memory":  # as the kernel ends a process that took too much
            await turn.record(LlmStep(turn_id=turn.turn_id, hop=len(turn.open.steps), entry=Entry("assistant", "hm")))
            os.kill(os.getpid(), signal.SIGKILL)
        case "side by side":
            async with anyio.create_task_group() as tools:
                tools.start_soon(watch_steps, anyio.sleep, 0.01)
                tools.start_soon(watch_steps, crash_later)
        case "thread":
            with keep_mark():
                await anyio.to_thread.run_sync(crash_slowly)
    await anyio.sleep(0.05)
    await turn.record(LlmStep(turn_id=turn.turn_id, hop=len(turn.open.steps), entry=Entry("assistant", "hm")))
    await anyio.sleep(0.05)
    return echo(turn)


async def crash_later() -> None:
    await anyio.sleep(0.02)
    ctypes.string_at(0)


def crash_slowly() -> None:
    for _ in range(200_000):
        pass
    ctypes.string_at(0)


async def live(folder: Path) -> None:
    async with await open_sqlite(folder / "journal.db") as engine, anyio.create_task_group() as tasks:
        marks = TurnMarks(folder / "turn-marks")
        lanes = Lanes(engine, SessionRepository(engine), work, QUICK, node="n", marks=marks)
        await tasks.start(lanes.run)
        while (await audit(engine)).faults:  # noqa: ASYNC110 - judged as a whole
            await anyio.sleep(0.02)
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(live, Path(sys.argv[1]))
