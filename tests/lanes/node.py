"""Lanes in a process of their own, on a journal that others work on too.

`python -m tests.lanes.node URL NAME FILE LEASE`. Each run of a turn is a line of FILE, and each step that the journal
refuses. A message that begins with "slow" takes a while, with a tool in the middle, and one with "long" longer than
this machine may stand still.
"""

import sys
from functools import partial
from pathlib import Path

import anyio

from gateway.cluster.nats.engine import open_nats
from gateway.errors import Conflict
from gateway.lanes.context import LaneSettings, interrupt_on_text
from gateway.lanes.lanes import Lanes
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.message import Message
from gateway.records import records
from gateway.sessions.repository import SessionRepository
from tests.lanes.desk import echo
from tests.spine import lane_settings

LEASE = 2.0
SLOW_SECONDS = 1.2
LONG_SECONDS = 60.0


def make_settings(lease: float) -> LaneSettings:
    return lane_settings(lease=lease, ack_wait=lease + 0.5, folded=1, interrupts=is_urgent)


def is_urgent(message: Message) -> bool:
    return "!" in message.text and interrupt_on_text(message)


SETTINGS = make_settings(LEASE)


async def work(name: str, told: Path, turn: LaneTurn) -> LaneResult:
    text = turn.messages[0].text

    def tell(what: str) -> None:
        with told.open("a") as file:
            file.write(f"{name} {what} {turn.messages[0].id} {text}\n")

    tell("begins")
    done = {step.call_id for step in turn.open.steps if isinstance(step, records.ToolStarted)}
    seconds = {"slow": SLOW_SECONDS, "long": LONG_SECONDS}.get(text[:4], 0.0)
    with turn.scope:
        for number in range(3 if seconds else 0):
            await anyio.sleep(seconds / 3)
            call = f"c{number}"
            if call not in done:
                try:
                    await turn.record(records.ToolStarted(turn_id=turn.turn_id, call_id=call, name="pay", args={}))
                except Conflict:
                    tell("is-refused")
                    raise
                tell(f"pays-{number}")
    return LaneResult(status="interrupted") if turn.scope.cancelled_caught else echo(turn)


async def live(url: str, name: str, told: Path, lease: float) -> None:
    async with await open_nats(url) as engine, anyio.create_task_group() as tasks:
        lanes = Lanes(engine, SessionRepository(engine), partial(work, name, told), make_settings(lease), node=name)
        await tasks.start(lanes.run)
        with told.open("a") as file:
            file.write(f"{name} serves - -\n")


if __name__ == "__main__":
    anyio.run(live, sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4]))
