"""A node that answers on the journal of NATS servers, of whichever version of the package is on the path.

A later version than ours notes in each turn what ours has no word for.
"""

import logging
import sys

import anyio
from anyio.abc import TaskGroup

from gateway.cluster.nats.engine import open_nats
from gateway.lanes.lanes import Lanes
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.message import Reply
from gateway.messages.transcript import Entry
from gateway.records import records
from gateway.sessions.repository import SessionRepository
from tests.spine import lane_settings


async def main(url: str, node: str) -> None:
    async def work(turn: LaneTurn) -> LaneResult:
        if note := getattr(records, "MoodNoted", None):
            await turn.record(note(turn_id=turn.open.turn_id, mood="well"))
        said = " + ".join(one.text for one in turn.messages)
        reply = Reply(f"{turn.open.turn_id}:reply", turn.messages[-1].address, f"{node}: {said}")
        return LaneResult((Entry("user", said), Entry("assistant", said)), (reply,))

    async with await open_nats(url) as engine, anyio.create_task_group() as tasks:
        lanes = Lanes(engine, SessionRepository(engine), work, lane_settings(), node=node)
        await tasks.start(lanes.run)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        tasks.start_soon(tell, lanes, tasks)


async def tell(lanes: Lanes, tasks: TaskGroup) -> None:
    """When it is asked to, say what was left to others, and end."""
    await anyio.to_thread.run_sync(sys.stdin.readline)
    sys.stdout.write(lanes.too_new.describe())
    tasks.cancel_scope.cancel()


logging.basicConfig(level=logging.WARNING)
anyio.run(main, sys.argv[1], sys.argv[2])
