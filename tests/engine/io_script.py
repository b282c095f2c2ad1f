"""Ten messages into a journal whose disk fails once, or that has little memory: which of them were acknowledged?

`python -m tests.engine.io_script JOURNAL [BYTES]`: so much memory SQLite may take.
"""

import asyncio
import sqlite3
import sys
from pathlib import Path

from gateway.engine import ConsumerSpec, NewRecord, open_sqlite
from gateway.errors import Duplicate, EngineError

MESSAGES = 10
TRIES = 20
RETRY_SECONDS = 0.2


async def write(journal: Path, tries: int) -> None:
    async with await open_sqlite(journal) as engine:
        consumer = await engine.consumer(ConsumerSpec("c", ("a.x",)))
        for number in range(MESSAGES):
            for _ in range(tries):
                try:
                    await engine.append(NewRecord("a.x", b"%d" % number, msg_id=f"m{number}"))
                except Duplicate:
                    pass
                except EngineError:
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                sys.stdout.write(f"{number}\n")
                sys.stdout.flush()
                break
            for delivery in await consumer.fetch(1, 0):
                await delivery.ack()


if __name__ == "__main__":
    if sys.argv[2:]:
        sqlite3.connect(":memory:").execute(f"PRAGMA hard_heap_limit = {int(sys.argv[2])}")
    asyncio.run(write(Path(sys.argv[1]), 1 if sys.argv[2:] else TRIES))
