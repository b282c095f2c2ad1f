"""A worker's life in small, lived by the nursery some times before it forks the first one.

CPython rewrites a function while it runs for the first times, and a page that is written to is shared no longer: a
tenth of a worker's own memory was its copy of functions that every worker runs. After a rehearsal they stay shared, and
are quick from the first event on. Nothing of it is left: no loop, no descriptor, no task.
"""

import asyncio
import json
import socket
from pathlib import Path

from gateway.hooks.wires.process.birth import Ends, low_descriptors_taken
from gateway.hooks.wires.process.calls import Calls, Hook
from gateway.hooks.wires.process.capabilities import Requests
from gateway.hooks.wires.process.context import Memory
from gateway.hooks.wires.process.link import Link
from gateway.hooks.wires.process.loader import Handlers
from gateway.hooks.wires.process.worker import Watch

TIMES = 10  # a function is rewritten after eight calls, and once more while it finds out what it is called with
FIELDS = {"tool": "shell", "args": {"command": "ls"}}
META = {"decides": True, "writable": ["args"], "turn": "t", "event": "e"}
EVENT = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tool:before", "params": FIELDS, "meta": META}).encode()


def rehearse() -> None:
    for _ in range(TIMES):
        _live()
    Requests.own = None


def _live() -> None:
    daemons, workers = socket.socketpair()
    with daemons, low_descriptors_taken():
        loop = asyncio.SelectorEventLoop(Watch())
        link = Link(workers.detach())
        with link.grip.socket:
            hook = Hook("rehearsal", Path("/"), {}, Handlers(_handle, {}), Ends(-1, -1, -1))
            calls = Calls(hook, link, Requests(link), Memory())
            daemons.sendall(EVENT + b"\n")
            loop.run_until_complete(_answer(link, calls))
        loop.close()


async def _answer(link: Link, calls: Calls) -> None:
    while not link.arrived:
        link.wait(-1)
    for message in link.take():
        calls.begin(message)
    await calls.finish()


def _handle(_event: str, _context: object) -> None:
    """As most hooks answer: with nothing."""
