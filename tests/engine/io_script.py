"""Ten messages into a journal whose disk fails once, or that has little memory: which of them were acknowledged?

`python -m tests.engine.io_script JOURNAL [BYTES]`: so much memory SQLite may take.
"""

import asyncio
import sqlite3
import sys
from functools import partial
from pathlib import Path

from gateway.engine import ConsumerSpec, NewRecord, open_sqlite
from gateway.engine.interface import append_until_written
from gateway.errors import Duplicate, EngineError

MESSAGES = 10


async def write(journal: Path, *, can_wait: bool) -> None:
    async with await open_sqlite(journal) as engine:
        consumer = await engine.consumer(ConsumerSpec("c", ("a.x",)))
        for number in range(MESSAGES):
            append = partial(engine.append, NewRecord("a.x", b"%d" % number, msg_id=f"m{number}"))
            try:
                await (append_until_written(append, f"message {number}") if can_wait else append())
            except Duplicate:
                pass
            except EngineError:
                continue
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            for delivery in await consumer.fetch(1, 0):
                await delivery.ack()


if __name__ == "__main__":
    if sys.argv[2:]:
        sqlite3.connect(":memory:").execute(f"PRAGMA hard_heap_limit = {int(sys.argv[2])}")
    asyncio.run(write(Path(sys.argv[1]), can_wait=not sys.argv[2:]))
