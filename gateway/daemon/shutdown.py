"""The stop of the gateway: in good order and within its limit, or at once at the second request.

Ending at once is always safe: the journal has all pending work, and the processes of hooks end with their parent.
"""

import logging
import os
import signal
import threading
from collections.abc import Awaitable, Callable

import anyio
import anyio.abc

from gateway.errors import ExitCode

log = logging.getLogger(__name__)


CLEANUP_SECONDS = 5.0  # after the turns: for pending replies, processes to end, files to close


class Shutdown:
    """The request to stop: its reason, and the exit code for the supervisor.

    Running work may go on for `limit` seconds; after `hard_limit` the process ends.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.hard_limit = limit + CLEANUP_SECONDS
        self._event = anyio.Event()
        self.reason = ""
        self.exit = ExitCode.OK

    @property
    def is_requested(self) -> bool:
        return self._event.is_set()

    def request(self, reason: str, exit_code: ExitCode = ExitCode.OK) -> None:
        """Request the stop. Only the first request counts; it starts the clock of `hard_limit`."""
        if self.is_requested:
            return
        self.reason, self.exit = reason, exit_code
        why = f"did not end within {self.hard_limit:.0f} s"
        last_resort = threading.Timer(self.hard_limit, exit_now, [exit_code, why])
        last_resort.daemon = True
        last_resort.start()
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()


def exit_now(exit_code: ExitCode, why: str) -> None:
    """End the process now, with everything that runs in it."""
    log.critical("the gateway %s; it ends now, and the next start continues pending work", why)
    logging.shutdown()
    os._exit(int(exit_code))


async def handle_signals(
    shutdown: Shutdown,
    reload: Callable[[], Awaitable[None]],
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Handle signals: TERM and INT stop, a second TERM or INT ends at once, HUP reads the configuration again."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        task_status.started()
        async for number in signals:
            name = signal.Signals(number).name
            if number == signal.SIGHUP:
                await reload()
            elif shutdown.is_requested:
                exit_now(ExitCode.INTERRUPTED, f"got {name} while it was stopping")
            else:
                log.info("%s: stopping", name)
                shutdown.request(name)
