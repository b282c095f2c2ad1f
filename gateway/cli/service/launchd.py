"""The gateway as an agent of launchd, on macOS.

It is expected to work, but not run there yet: only its text is tested.
"""

import os
import plistlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from gateway.cli.service.systemd import call_program, make_tail_command, run_program
from gateway.cli.service.units import LABEL, OLD_LABEL, ServiceError, check_owner, find_own_unit, is_own_unit
from gateway.config.home import Home

NOT_RUN = "on macOS this is expected to work, and has not been tested; tell us how it went"


class LaunchdService:
    """An agent of the person who is logged in."""

    def __init__(self, home: Home, environ: Mapping[str, str]) -> None:
        self.home = home
        self._path = environ.get("PATH", "/usr/bin:/bin")
        person = environ.get("HOME") or str(Path.home())
        self._agents = Path(person, "Library", "LaunchAgents")
        self._log = home.logs / "launchd.log"

    @property
    def unit(self) -> Path:
        """The agent's file; under its older name until `install` moves it."""
        return find_own_unit(*(self._agents / f"{label}.plist" for label in (LABEL, OLD_LABEL)))

    @property
    def is_installed(self) -> bool:
        return is_own_unit(self.unit)

    @property
    def secrets(self) -> Path:
        return self.home.env

    def render(self, program: Path) -> bytes:
        """Render the agent's file.

        launchd restarts a process that ended, unless it was stopped in good order, but does not notice a hung one.
        """
        return plistlib.dumps(
            {
                "Label": LABEL,
                "ProgramArguments": [str(program), "--home", str(self.home.root), "run"],
                "EnvironmentVariables": {"PATH": self._path},
                "RunAtLoad": True,
                "KeepAlive": {"SuccessfulExit": False},
                "ThrottleInterval": 5,
                "ExitTimeOut": 45,
                "Umask": 0o077,
                "HardResourceLimits": {"Core": 0},
                "StandardOutPath": str(self._log),
                "StandardErrorPath": str(self._log),
            }
        )

    def check_presence(self) -> None:
        """Raise ServiceError if launchd is missing."""
        run_program(["launchctl", "version"])

    def install(self, program: Path) -> Iterator[str]:
        """Install the agent. Raises ServiceError if launchd refused, or another program's agent has this name."""
        check_owner(self.unit)
        self.unit.parent.mkdir(parents=True, exist_ok=True)
        self._log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.is_running():
            self.stop()
        if self.unit.stem == OLD_LABEL:
            self.unit.unlink()
        self.unit.write_bytes(self.render(program))
        yield f"written: {self.unit}"
        self.start()
        yield "it runs, starts when you log in, and again when it fails"
        yield NOT_RUN

    def uninstall(self) -> Iterator[str]:
        """Remove the agent. Raises ServiceError if it is not installed."""
        if not self.unit.exists():
            raise ServiceError(f"it is not installed as a service: {self.unit} not found")
        check_owner(self.unit)
        unit = self.unit
        self.stop()
        unit.unlink()
        yield f"it has ended, and {unit} is gone"

    def start(self) -> None:
        """Start the agent. Raises ServiceError if launchd refused."""
        run_program(["launchctl", "bootstrap", self._domain, str(self.unit)])

    def stop(self) -> None:
        call_program(["launchctl", "bootout", self._target])

    def is_running(self) -> bool:
        return self.is_installed and call_program(["launchctl", "print", self._target]).returncode == 0

    def describe(self) -> dict[str, str]:
        if not self.unit.exists():
            return {"service": "not installed; hermes-gateway service install does it", "unit": str(self.unit)}
        return {"service": "loaded" if self.is_running() else "not loaded", "unit": str(self.unit), "mind": NOT_RUN}

    def is_installed_for_home(self) -> bool:
        """Return True if the installed agent serves this home."""
        return self.is_installed and str(self.home.root) in plistlib.loads(self.unit.read_bytes())["ProgramArguments"]

    def make_log_command(self, lines: int, *, follow: bool) -> list[str]:
        """Return the command that shows the log. Raises ServiceError if the log was not found."""
        if not self._log.exists():
            raise ServiceError(f"{self._log} not found")
        return make_tail_command(self._log, lines, follow=follow)

    @property
    def _domain(self) -> str:
        return f"gui/{os.getuid()}"

    @property
    def _target(self) -> str:
        return f"{self._domain}/{self.unit.stem}"
