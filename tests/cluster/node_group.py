"""Many nodes in one process: `python -m tests.cluster.node_group URL NAME COUNT FILE`.

Each has a connection of its own, lanes, what it says of itself, and parts that one node at a time does; only a model is
missing. Each run of a turn is a line of FILE, with the node and the message's text. With SIGTERM all of them leave.
"""

import signal
import sys
from functools import partial
from pathlib import Path

import anyio
import anyio.abc

from gateway.cluster.nats.engine import open_nats
from gateway.cluster.nodes import LeasePart, SharedNodes
from gateway.config.node_settings import NODE_ROLES
from gateway.daemon.nodes import BOT, SCHEDULE, TENDING
from gateway.lanes.lanes import Lanes
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.sessions.repository import SessionRepository
from tests.lanes.desk import echo
from tests.spine import lane_settings

ANSWER_SECONDS = 0.05  # as a model would take
DRAIN_SECONDS = 5.0
BOTS = 10
PARTS = [TENDING, SCHEDULE, *(f"{BOT}network-{number}" for number in range(BOTS))]


async def work(name: str, told: Path, turn: LaneTurn) -> LaneResult:
    tell(told, name, turn.messages[0].text)
    await anyio.sleep(ANSWER_SECONDS)
    return echo(turn)


def tell(told: Path, name: str, what: str) -> None:
    with told.open("a") as file:
        file.write(f"{name} {what}\n")


async def serve_nothing(*, task_status: anyio.abc.TaskStatus[None]) -> None:
    task_status.started()
    await anyio.sleep_forever()


async def live(url: str, name: str, told: Path, leave: anyio.Event) -> None:
    async with await open_nats(url) as engine, anyio.create_task_group() as tasks:
        nodes = SharedNodes(engine, name, NODE_ROLES)
        await tasks.start(nodes.run)
        for key in PARTS:
            tasks.start_soon(LeasePart(key, serve_nothing, nodes, key).run)
        lanes = Lanes(engine, SessionRepository(engine), partial(work, name, told), lane_settings(folded=1), node=name)
        await tasks.start(lanes.run)
        tell(told, name, "serves")
        await leave.wait()
        await lanes.drain(DRAIN_SECONDS)
        tasks.cancel_scope.cancel()


async def live_together(url: str, name: str, count: int, told: Path) -> None:
    leave = anyio.Event()
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(live, url, f"{name}-{number}", told, leave)
            async for _ in signals:
                leave.set()
                return


if __name__ == "__main__":
    anyio.run(live_together, sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
