"""A worker's life in small, lived by the nursery some times before it forks the first one.

CPython rewrites a function while it runs for the first times, and a page that is written to is shared no longer: a
tenth of a worker's own memory was its copy of functions that every worker runs. After a rehearsal they stay shared, and
are quick from the first event on. Nothing of it is left: no loop, no descriptor, no task.
"""

import asyncio
import json
import socket
from pathlib import Path

from gateway.worker.calls import HandlerCalls, WorkerHook
from gateway.worker.capabilities import GatewayRequests
from gateway.worker.confine import WorkerDescriptors, reserve_low_descriptors
from gateway.worker.context import TurnMemory
from gateway.worker.link import WorkerLink
from gateway.worker.loader import Handlers
from gateway.worker.worker import TimedSelector

ROUNDS = 10  # a function is rewritten after eight calls, and once more while it finds out what it is called with
FIELDS = {"tool": "shell", "args": {"command": "ls"}}
META = {"decides": True, "writable": ["args"], "turn": "t", "event": "e"}
EVENT = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tool:before", "params": FIELDS, "meta": META}).encode()


def prewarm_code() -> None:
    for _ in range(ROUNDS):
        _run_sample_call()
    GatewayRequests.own = None


def _run_sample_call() -> None:
    daemons, workers = socket.socketpair()
    with daemons, reserve_low_descriptors():
        loop = asyncio.SelectorEventLoop(TimedSelector())
        link = WorkerLink(workers.detach())
        with link.wire_guard.socket:
            hook = WorkerHook("rehearsal", Path("/"), {}, Handlers(_sample_handler, {}), WorkerDescriptors(-1, -1, -1))
            calls = HandlerCalls(hook, link, GatewayRequests(link), TurnMemory())
            daemons.sendall(EVENT + b"\n")
            loop.run_until_complete(_answer_call(link, calls))
        loop.close()


async def _answer_call(link: WorkerLink, calls: HandlerCalls) -> None:
    while not link.arrived:
        link.wait(-1)
    for message in link.take():
        calls.begin(message)
    await calls.finish()


def _sample_handler(_event: str, _context: object) -> None:
    """As most hooks answer: with nothing."""
