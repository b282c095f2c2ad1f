"""`run_daemon`: one gateway for a home, until it is told to stop."""

import gc
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio

from gateway import __version__
from gateway.config.home import Home
from gateway.daemon.control_verbs import build_verbs
from gateway.daemon.gateway import Gateway, open_gateway
from gateway.daemon.lock import lock_home
from gateway.daemon.reload import ConfigurationReloader, LoadConfiguration
from gateway.daemon.shutdown import Shutdown, handle_signals
from gateway.daemon.status import format_status_line
from gateway.errors import ExitCode
from gateway.notify import Notifier

log = logging.getLogger(__name__)

STATUS_PAUSE = 5.0
CLEANUP_SECONDS = 5.0  # after the drain: processes to end, files to close
SLOW_LOOP = 1.0  # a loop that is this late is ill: the supervisor's watchdog is not told that all is well

Announce: TypeAlias = Callable[[Gateway], Awaitable[None]]


async def run_daemon(
    home: Home, load: LoadConfiguration, notifier: Notifier, watchdog: float, announce: Announce
) -> ExitCode:
    """Serve the home. `load` reads the configuration, again at each SIGHUP; `watchdog` is the supervisor's patience.

    Raises:
        HomeBusy: another gateway serves this home, and did not end in time.
        ConfigError: the configuration is not right.
    """
    gc.freeze()  # what was imported stays: the collector need not walk through it at the start
    configuration = load()
    limit = configuration.settings.gateway.shutdown_timeout
    stop = Shutdown(limit)
    async with lock_home(home.lock, limit), anyio.create_task_group() as tasks:
        async with open_gateway(home, configuration, stop, build_verbs) as gateway:
            await tasks.start(handle_signals, stop, ConfigurationReloader(gateway, load, notifier).now)
            tasks.start_soon(report_status, gateway, notifier, watchdog)
            notifier.ready(format_status_line(gateway))
            log.info("hermes-gateway %s serves %s", __version__, home.root)
            await announce(gateway)
            gc.collect()
            gc.freeze()  # the collector's walks through what is there from the start would hold the loop up
            await stop.wait()
            notifier.stopping(limit + CLEANUP_SECONDS, stop.reason)
        log.info("stopped: %s", stop.reason)
        tasks.cancel_scope.cancel()
    return stop.exit


async def report_status(gateway: Gateway, notifier: Notifier, watchdog: float) -> None:
    """Tell the supervisor how we fare, and, as long as the loop is in time, that we live."""
    pause = min(watchdog / 3, STATUS_PAUSE) if watchdog else STATUS_PAUSE
    while True:
        due = time.monotonic() + pause
        await anyio.sleep(pause)
        late = time.monotonic() - due
        if late < SLOW_LOOP:
            notifier.alive()
        else:
            log.warning("the event loop was held up for %.1f s", late)
        notifier.status(format_status_line(gateway))
