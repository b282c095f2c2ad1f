"""The running gateway of a home, whatever started it: its parts, its end, and its start with any program."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.cli.service.launchd import LaunchdService
from gateway.cli.service.systemd import SystemdService
from gateway.cli.service.units import ServiceError
from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.daemon.home_lock import lock_holder_of, reserve_home
from gateway.errors import GatewayError, HomeBusy
from gateway.logs.text import to_one_line
from gateway.worker.process_marks import MARK_VARIABLE, mark_of
from gateway.worker.process_tree import find_ancestors

HOLDER = re.compile(r"pid (\d+)")
ASK_PATIENCE = 10.0  # seconds for an answer of the gateway
WATCH_PAUSE = 0.3
STOP_PATIENCE = 660.0  # seconds: running turns may go on for ten minutes, if the gateway is set so
LOOK_PAUSE = 1.0
UP_HOOKS = frozenset({"registered", "starting", "loaded"})


@dataclass(frozen=True, slots=True)
class ServedFacts:
    """The parts that are up by name, and the version that serves them; empty if no gateway answers.

    Networks count here or on another gateway of the journal.
    """

    version: str = ""
    is_ready: bool = False
    platforms: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()

    def list_missing(self, wanted: "ServedFacts") -> list[str]:
        """Describe the wanted parts that are not up here."""
        networks = [f"{name} is not connected" for name in wanted.platforms if name not in self.platforms]
        return networks + [f"the hook {name} does not run" for name in wanted.hooks if name not in self.hooks]


class RunningGateway:
    """The gateway of one home. `service` is the one that runs it, if any."""

    def __init__(self, home: Home, environ: Mapping[str, str]) -> None:
        self._home, self._environ = home, environ
        self.service = find_service(home, environ, self.pid)
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process that serves the home; 0: none does."""
        found = HOLDER.search(lock_holder_of(self._home.lock))
        return int(found[1]) if found else 0

    @property
    def output(self) -> Path:
        """The file with its output, if no service takes that."""
        return self._home.logs / "started.log"

    def describe(self) -> str:
        if not self.pid:
            return "it does not run"
        return f"it runs, as {'a service' if self.service else 'started by hand'} (pid {self.pid})"

    def check_caller(self) -> None:
        """Raise ServiceError if this process comes from the gateway, as its agent's commands do: it would end too."""
        mark, ours = mark_of(self._home.lock), self._environ.get(MARK_VARIABLE, "")
        if (mark and ours.startswith(mark)) or (self.pid and self.pid in find_ancestors(os.getpid())):
            raise ServiceError(
                "this comes from a process of the gateway itself, which would end halfway when that is stopped\n"
                "run it in a terminal of your own"
            )

    def read_facts(self) -> ServedFacts:
        """Return the gateway's own facts, as of now."""
        with suppress(GatewayError, OSError):
            status: dict[str, Any] = call_gateway(self._home.socket, "status", ASK_PATIENCE)
            hooks = call_gateway(self._home.socket, "hooks.list", ASK_PATIENCE)["hooks"]
            return ServedFacts(
                str(status["version"]),
                status["state"] == "ready",
                tuple(name for name, one in status["platforms"].items() if one["up"] or one.get("served_by")),
                tuple(one["name"] for one in hooks if one["state"] in UP_HOOKS),
            )
        return ServedFacts()

    def stop(self) -> None:
        """Stop the gateway as its supervisor would; it drains. Raises ServiceError if it refuses."""
        if self.service:
            self.service.stop()
        elif pid := self.pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    @contextmanager
    def keep_stopped(self) -> Generator[None, None, None]:
        """Stop the gateway, and keep the home reserved inside the block, also against gateways that waited for it.

        Raises:
            ServiceError: the manager of services refuses to stop it.
            HomeBusy: it does not end.
        """
        limit, told = time.monotonic() + STOP_PATIENCE, {0}
        self.stop()
        told.add(self.pid)
        with ExitStack() as held:
            while True:
                try:
                    held.enter_context(reserve_home(self._home.lock, LOOK_PAUSE))
                    break
                except HomeBusy:
                    if time.monotonic() > limit:
                        raise
                    if (pid := self.pid) not in told:
                        told.add(pid)
                        with suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGTERM)
            yield

    def start(self, program: Path) -> None:
        """Start the program in place, as a service if it was one, or else in the background.

        Raises:
            ServiceError: it did not get ready.
        """
        if self.service:
            self.service.start()
            return
        self._home.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.output.open("wb") as output:
            self._child = subprocess.Popen(
                [program, "--home", str(self._home.root), "run"],
                env=dict(self._environ),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_up(self, version: str, wanted: ServedFacts, patience: float) -> list[str]:
        """Wait for the wanted parts; return the faults once it has ended or the time is over, or none if all are up."""
        limit = time.monotonic() + patience
        while True:
            facts = self.read_facts()
            missing = facts.list_missing(wanted)
            if facts.version and facts.version != version:
                missing.append(f"something else has started version {facts.version}")
            if facts.is_ready and not missing:
                return []
            if ended := self._why_ended():
                return [ended]
            if time.monotonic() > limit:
                return missing if facts.is_ready else [f"it is not ready after {patience:.0f} s"]
            time.sleep(WATCH_PAUSE)

    def _why_ended(self) -> str:
        if self.service:
            return "" if self.service.is_running() else "the service has ended; see: hermes-gateway service logs"
        if self._child is None or self._child.poll() is None:
            return ""
        said = self.output.read_text("utf-8", "replace").strip().splitlines()
        return f"it has ended with {self._child.returncode}: {to_one_line(' '.join(said[-3:]), 500)}"


def find_service(home: Home, environ: Mapping[str, str], pid: int) -> LaunchdService | SystemdService | None:
    """Return the service that runs the process `pid` on this home; for 0, the one that is installed for it."""
    if sys.platform == "darwin":
        launchd = LaunchdService(home, environ)
        return launchd if launchd.is_installed_for_home() else None
    for is_system in (False, True):
        service = SystemdService(home, environ, is_system=is_system)
        if not service.is_installed or service.find_home() != home.root:
            continue
        with suppress(ServiceError):
            found = HOLDER.search(service.describe()["service"])
            if found and pid in (0, int(found[1])):
                return service
    return None
