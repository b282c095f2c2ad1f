"""The sender of traces: it follows the journal and the hooks, and passes spans on without delaying anyone.

A collector that is away or slow costs spans and nothing else.
"""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from gateway.agent.libraries import describe_install, is_installed
from gateway.engine.interface import Engine
from gateway.errors import GatewayError
from gateway.hooks.stats import HookCall
from gateway.records import subjects
from gateway.threads import run_in_thread
from gateway.traces.turn_spans import TurnSpans

if TYPE_CHECKING:
    from gateway.traces.collector import Collector

LAST_SECONDS = 3.0  # for what waits to be sent when the gateway ends
EXTRA = "otel"


class TraceSender:
    """A part of the gateway that exists if `traces.endpoint` names a collector."""

    def __init__(self, engine: Engine, endpoint: str, find_provider: Callable[[str], str], node: str = "") -> None:
        self._engine = engine
        self._endpoint = endpoint
        self._spans = TurnSpans(find_provider, node)
        self._collector: Collector | None = None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Send traces until cancelled. Raises GatewayError if the library is not installed."""
        tail = await self._engine.tail(*subjects.MESSAGE_SUBJECTS)
        collector = self._collector = await run_in_thread(open_collector, self._endpoint)
        try:
            task_status.started()
            async for record in tail:
                for span in self._spans.note(record):
                    collector.put(span)
        finally:
            self._collector = None
            with anyio.CancelScope(shield=True):
                await _close(collector)

    def note_call(self, call: HookCall) -> None:
        """Note a hook's call."""
        if self._collector:
            self._collector.put(self._spans.note_call(call))


def open_collector(endpoint: str) -> "Collector":
    """Open the collector. Raises GatewayError if the library is not installed."""
    if not is_installed(EXTRA):
        raise GatewayError(f"traces.endpoint is set: {describe_install(EXTRA)}")
    from gateway.traces.collector import Collector  # noqa: PLC0415 - the library is an extra

    return Collector(endpoint)


async def _close(collector: "Collector") -> None:
    """Let it send the waiting spans; a collector that hangs does not delay the end."""
    closing = threading.Thread(target=collector.close, name="last traces", daemon=True)
    closing.start()
    end = time.monotonic() + LAST_SECONDS
    while closing.is_alive() and time.monotonic() < end:  # noqa: ASYNC110 - a thread wakes no loop
        await anyio.sleep(0.02)
