"""A process that writes into a journal and reads from it until it is killed, and prints what the journal acknowledged.

Some records it leaves to its next life.

Lines: `kept FIRST SECOND` when an append of two was acknowledged; `got SEQ ATTEMPT` and `done SEQ` for a consumer.
"""

import asyncio
import sys
from pathlib import Path

from gateway.engine.interface import ConsumerSpec, Engine, NewRecord
from gateway.engine.sqlite.engine import open_sqlite

WRITERS = 20


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def write(engine: Engine, life: str, writer: int) -> None:
    for n in range(1_000_000):
        name = f"{life}.{writer}.{n}".encode()
        first, second = await engine.append(
            NewRecord(f"in.{writer}", name, msg_id=name.decode()), NewRecord(f"out.{writer}", name)
        )
        say("kept", first, second)


async def consume(engine: Engine) -> None:
    consumer = await engine.consumer(ConsumerSpec("reader", ("in.*",), max_inflight=50))
    while True:
        for delivery in await consumer.fetch(10, 60):
            say("got", delivery.record.seq, delivery.attempt)
            if delivery.record.seq % 30 or delivery.attempt > 1:
                await delivery.ack()
                say("done", delivery.record.seq)


async def main(path: Path, life: str) -> None:
    async with await open_sqlite(path) as engine, asyncio.TaskGroup() as group:
        for writer in range(WRITERS):
            group.create_task(write(engine, life, writer))
        group.create_task(consume(engine))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
