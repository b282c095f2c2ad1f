"""`run_daemon` serves a home with one gateway until a request to stop."""

import gc
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from gateway import __version__
from gateway.backoff import find_pause
from gateway.config.home import Home
from gateway.daemon.callers import build_caller_check
from gateway.daemon.control_verbs import build_verbs
from gateway.daemon.disk_configuration import DiskConfiguration
from gateway.daemon.home_lock import lock_home, write_waiting
from gateway.daemon.own_process import (
    isolate_process,
    keep_orphans,
    kill_orphans,
    open_descriptor_limit,
    remove_unused_folders,
)
from gateway.daemon.reload import ConfigurationReloader, LoadConfiguration, answer_signal
from gateway.daemon.shutdown import Shutdown, handle_signals
from gateway.daemon.startup import bind_reload, open_gateway
from gateway.daemon.status import StatusReport, format_status_line
from gateway.errors import ExitCode
from gateway.notify import Notifier
from gateway.threads import prepare_threads
from gateway.worker.command import DEFAULT_TEMPORARY

COLLECTED_AFTER = (20_000, 20, 50)  # a message makes thousands of objects, and nearly all need no collector

log = logging.getLogger(__name__)

STATUS_PAUSE = 5.0
START_PATIENCE = 90.0  # seconds for the start, after the wait for the gateway before this one
SLOW_LOOP = 1.0  # seconds; if the loop is later, the supervisor's watchdog gets no sign of life

Announce: TypeAlias = Callable[[Home, Mapping[str, Any]], Awaitable[None]]


async def run_daemon(
    disk: DiskConfiguration,
    load: LoadConfiguration,
    notifier: Notifier,
    watchdog: float,
    announce: Announce,
    check_program: Callable[[], None],
) -> ExitCode:
    """Serve the home of this configuration.

    `load` reads the configuration again at each SIGHUP. `watchdog` is the time in seconds that the supervisor waits for
    a sign of life. `check_program` raises OtherProgram if an upgrade has replaced this program.

    Raises:
        HomeBusy: another gateway serves this home and did not end in time.
        ConfigError: the configuration has mistakes.
    """
    isolate_process()
    prepare_threads()
    open_descriptor_limit()
    gc.freeze()  # imported modules stay, so the collector can skip them at the start
    home, configuration = disk.home, disk.loaded
    remove_unused_folders(Path(configuration.environ.get("TMPDIR", DEFAULT_TEMPORARY)))
    limit = configuration.settings.gateway.shutdown_timeout
    shutdown = Shutdown(limit)
    notifier.starting(limit + START_PATIENCE)
    async with lock_home(home.lock, limit), anyio.create_task_group() as tasks:
        check_program()
        await kill_orphans(home.lock)
        tasks.start_soon(keep_orphans)
        reloader = ConfigurationReloader(configuration.settings, load, notifier)
        waiting = partial(report_waiting, notifier, home.lock)
        verbs = lambda find: build_verbs(find, bind_reload(find("bind"), reloader))  # noqa: E731
        serving = open_gateway(home, configuration, shutdown, verbs, build_caller_check, waiting)
        async with serving as gateway:
            gateway.run.disk = disk
            await tasks.start(handle_signals, shutdown, partial(answer_signal, bind_reload(gateway.bind, reloader)))
            describe = gateway.bind(format_status_line)
            tasks.start_soon(report_status, describe, notifier, watchdog)
            notifier.ready(describe())
            log.info("hermes-gateway %s serves %s", __version__, home.root)
            write_waiting(home.lock, "")
            await announce(home, await StatusReport(gateway.bind).build())
            gc.set_threshold(*COLLECTED_AFTER)
            gc.collect()
            gc.freeze()  # the collector would hold up the loop with objects that stay
            await shutdown.wait()
            notifier.stopping(shutdown.hard_limit, shutdown.reason)
        await kill_orphans(home.lock)
        log.info("stopped: %s", shutdown.reason)
        tasks.cancel_scope.cancel()
    return shutdown.exit


def report_waiting(notifier: Notifier, lock: Path, why: str) -> None:
    """Report to the supervisor, and in the lock file of the home, why the start of this gateway waits."""
    notifier.ready(why)
    notifier.alive()
    write_waiting(lock, why)


async def report_status(describe: Callable[[], str], notifier: Notifier, watchdog: float) -> None:
    """Send the gateway's state to the supervisor and, as long as the event loop is on time, a sign of life."""
    pause = min(watchdog / 3, STATUS_PAUSE) if watchdog else STATUS_PAUSE
    while True:
        due = time.monotonic() + pause
        await anyio.sleep(find_pause(pause))
        if (late := time.monotonic() - due) < SLOW_LOOP:
            notifier.alive()
        else:
            log.warning("the event loop was held up for %.1f s", late)
        if notifier.address:
            notifier.status(describe())
