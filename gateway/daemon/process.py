"""`run_daemon`: one gateway for a home, until it is told to stop."""

import gc
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio

from gateway import __version__
from gateway.backoff import find_pause
from gateway.config.loading import Configuration
from gateway.config.reference import list_differences
from gateway.config.schema import PREFIX
from gateway.config.settings import Settings
from gateway.daemon.callers import build_caller_check
from gateway.daemon.control_verbs import build_verbs
from gateway.daemon.disk_configuration import DiskConfiguration, Stamps, list_changed_variables, stamp_files
from gateway.daemon.gateway import Gateway
from gateway.daemon.home_lock import lock_home, write_waiting
from gateway.daemon.own_process import (
    isolate_process,
    keep_orphans,
    kill_orphans,
    open_descriptor_limit,
    remove_unused_folders,
)
from gateway.daemon.shutdown import Shutdown, handle_signals
from gateway.daemon.startup import open_gateway
from gateway.daemon.status import format_status_line
from gateway.errors import ExitCode, GatewayError
from gateway.notify import Notifier
from gateway.records.activity import CALLER, Caller
from gateway.records.records import ActivityRecord
from gateway.threads import prepare_threads
from gateway.worker.command import DEFAULT_TEMPORARY

LoadConfiguration: TypeAlias = Callable[[], Configuration]

COLLECTED_AFTER = (20_000, 20, 50)  # a message makes thousands of objects, and nearly all go by themselves
RELOADABLE = {
    "model",
    "models",
    "agents",
    "routes",
    "tools",
    "mcp_servers",
    "access",
    "backup",
    "budgets",
    "display",
    "voice",
    "webhooks",
    "web.people",
    "sessions.busy",
    "logs.level",
}
RELOADABLE |= {f"hooks.{name}" for name in ("dirs", "enabled", "disabled", "env", "trust", "each")}
RELOADABLE |= {
    "journal.retention",
    "gateway.timezone",
    *(f"platforms.*.{name}" for name in ("home_channel*", "allowed_roles", "progress", "reactions", "typing")),
}


class ConfigurationReloader:
    """Reads the configuration again, and says what comes of it: in the log and in `status`."""

    def __init__(self, built: Settings, load: LoadConfiguration, notifier: Notifier) -> None:
        self._built = built
        self._load = load
        self._notifier = notifier
        self._lock = anyio.Lock()

    async def reload(self, gateway: Gateway) -> tuple[list[str], list[str]]:
        """Returns which settings have changed, and which count only from the next start on.

        Raises:
            GatewayError: what is there now cannot be used; the configuration before goes on.
        """
        async with self._lock:
            self._notifier.reloading()
            try:
                stamps, configuration = stamp_files(gateway.home), self._load()
                return await self._apply(gateway, configuration, stamps)
            except GatewayError as error:
                log.error("the configuration was not reloaded, the one before goes on: %s", error)
                gateway.trouble = f"the configuration was not reloaded: {error}"
                raise
            finally:
                self._notifier.ready(format_status_line(gateway))

    async def answer_signal(self, gateway: Gateway) -> None:
        """Whoever sent SIGHUP waits for no answer: the log and `status` have it."""
        CALLER.set(Caller("owner", "SIGHUP", "owner"))
        with suppress(GatewayError):
            await self.reload(gateway)

    async def _apply(
        self, gateway: Gateway, configuration: Configuration, stamps: Stamps
    ) -> tuple[list[str], list[str]]:
        changed = list(list_differences(gateway.settings, configuration.settings))
        variables = list_changed_variables(gateway.configuration.environ, configuration.environ)
        changed += [name for name in variables if not name.startswith(PREFIX)]  # their settings are named
        later = list_restart_needed(self._built, configuration.settings)
        await gateway.apply_configuration(configuration)
        if gateway.disk:
            gateway.disk.keep(configuration, stamps)
        gateway.trouble = f"changed, and in force after hermes-gateway restart: {', '.join(later)}" if later else ""
        log.info("the configuration was reloaded%s", f"; {gateway.trouble}" * bool(gateway.trouble))
        if changed:
            await gateway.activity.write(ActivityRecord(what="reload", on=", ".join(changed)))
        return changed, later


def list_restart_needed(before: Settings, after: Settings) -> list[str]:
    """The settings that differ, and for which it must be started again."""
    return [name for name in list_differences(before, after) if not is_reloadable(name)]


def is_reloadable(name: str) -> bool:
    """Whether a change of this setting counts at once: it, or all of its section."""
    return any(fnmatchcase(name, known) or name.startswith(f"{known}.") for known in RELOADABLE)


log = logging.getLogger(__name__)

STATUS_PAUSE = 5.0
START_PATIENCE = 90.0  # seconds for the start, after the wait for the gateway before this one
SLOW_LOOP = 1.0  # a loop that is this late is ill: the supervisor's watchdog is not told that all is well

Announce: TypeAlias = Callable[[Gateway], Awaitable[None]]


async def run_daemon(
    disk: DiskConfiguration,
    load: LoadConfiguration,
    notifier: Notifier,
    watchdog: float,
    announce: Announce,
    check_program: Callable[[], None],
) -> ExitCode:
    """Serve the home of this configuration. `load` reads it again at each SIGHUP, for it to count from then on.
    `watchdog` is the supervisor's patience. `check_program` fails where this is not the program any more that is to
    serve.

    Raises:
        HomeBusy: another gateway serves this home, and did not end in time.
        ConfigError: the configuration is not right.
    """
    isolate_process()
    prepare_threads()
    open_descriptor_limit()
    gc.freeze()  # what was imported stays: the collector need not walk through it at the start
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
        verbs = partial(build_verbs, reload=reloader.reload)
        waiting = partial(report_waiting, notifier, home.lock)
        serving = open_gateway(home, configuration, shutdown, verbs, build_caller_check, waiting)
        async with serving as gateway:
            gateway.disk = disk
            await tasks.start(handle_signals, shutdown, partial(reloader.answer_signal, gateway))
            tasks.start_soon(report_status, gateway, notifier, watchdog)
            notifier.ready(format_status_line(gateway))
            log.info("hermes-gateway %s serves %s", __version__, home.root)
            write_waiting(home.lock, "")
            await announce(gateway)
            gc.set_threshold(*COLLECTED_AFTER)
            gc.collect()
            gc.freeze()  # the collector's walks through what is there from the start would hold the loop up
            await shutdown.wait()
            notifier.stopping(shutdown.hard_limit, shutdown.reason)
        await kill_orphans(home.lock)
        log.info("stopped: %s", shutdown.reason)
        tasks.cancel_scope.cancel()
    return shutdown.exit


def report_waiting(notifier: Notifier, lock: Path, why: str) -> None:
    """Tell the supervisor that all is well though another gateway is at work, and whoever looks at the home why."""
    notifier.ready(why)
    notifier.alive()
    write_waiting(lock, why)


async def report_status(gateway: Gateway, notifier: Notifier, watchdog: float) -> None:
    """Tell the supervisor how we fare, and, as long as the loop is in time, that we live."""
    pause = min(watchdog / 3, STATUS_PAUSE) if watchdog else STATUS_PAUSE
    while True:
        due = time.monotonic() + pause
        await anyio.sleep(find_pause(pause))
        late = time.monotonic() - due
        if late < SLOW_LOOP:
            notifier.alive()
        else:
            log.warning("the event loop was held up for %.1f s", late)
        notifier.status(format_status_line(gateway))
