"""Ten messages into a journal whose disk fails once, or that has little memory: which of them were acknowledged?

`python -m tests.engine.io_script JOURNAL [BYTES]`: so much memory SQLite may take. Without a journal each line of its
input names one, the call that fails and how (JSON): it forks for each, and answers with how that process ended and what
it wrote.
"""

import asyncio
import json
import os
import sqlite3
import sys
import traceback
from functools import partial
from pathlib import Path

from gateway.engine.interface import ConsumerSpec, NewRecord, append_until_written
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import Duplicate, EngineError

MESSAGES = 10


async def write(journal: str, *, can_wait: bool) -> None:
    async with await open_sqlite(Path(journal)) as engine:
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


def fork_script(journal: str, at: int, kind: str) -> tuple[int, str]:
    """The script in a process of its own, which has imported everything already: how it ended, and what it wrote."""
    heard, said = os.pipe()
    if not (pid := os.fork()):
        os.dup2(said, sys.stdout.fileno())
        os.environ |= {"FAULT_AT": str(at), "FAULT_AS": kind}
        try:
            asyncio.run(write(journal, can_wait=True))
        except Exception:  # noqa: BLE001 - it is not to go on as its parent
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(said)
    with os.fdopen(heard) as file:
        written = file.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), written


if __name__ == "__main__":
    if not sys.argv[1:]:
        for line in sys.stdin:
            sys.stdout.write(json.dumps(fork_script(*json.loads(line))) + "\n")
            sys.stdout.flush()
        sys.exit()
    if sys.argv[2:]:
        sqlite3.connect(":memory:").execute(f"PRAGMA hard_heap_limit = {int(sys.argv[2])}")
    asyncio.run(write(sys.argv[1], can_wait=not sys.argv[2:]))
