"""The gateway as a service of systemd, of one person or of the machine. The units are those of the folder `systemd`."""

import getpass
import os
import pwd
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gateway.cli.service.program import check_reach
from gateway.cli.service.units import (
    OLD_UNIT,
    SYSTEM_UNITS,
    UNIT,
    ServiceError,
    check_owner,
    find_own_unit,
    find_user_units,
    is_own_unit,
)
from gateway.config.home import Home
from gateway.errors import ConfigError
from gateway.files.folders import write_file
from gateway.logs.text import to_one_line

SYSTEM_HOME = Path("/var/lib/hermes-gateway")
SYSTEM_USER = "hermes-gateway"
CREDENTIALS = Path("/etc/credstore")
FACTS = ("ActiveState", "SubState", "StatusText", "MainPID", "NRestarts", "UnitFileState", "Result")
PATIENCE = 30.0  # seconds for an answer
# Seconds: a stop may drain for ten minutes, if the gateway is set so, and a restart begins with a stop.
LONGEST_CHANGE = 900.0
STARTED = Path("/run/systemd/system")  # exists if systemd has started the machine
REMEDY = "have whatever starts programs here run: hermes-gateway run"
NO_MANAGER = "log in as that user, at a terminal or by ssh, where systemd serves you; or install it with --system"


class SystemdService:
    """A unit, and the manager that runs it."""

    def __init__(self, home: Home, environ: Mapping[str, str], *, is_system: bool) -> None:
        self.home = Home(SYSTEM_HOME) if is_system else home
        self._environ, self._is_system = environ, is_system
        self._person = environ.get("HOME") or str(Path.home())

    @property
    def secrets(self) -> Path:
        """The place for its secrets."""
        return CREDENTIALS if self._is_system else self.home.env

    @property
    def unit(self) -> Path:
        """The unit's file; under its older name until `install` moves it."""
        folder = SYSTEM_UNITS if self._is_system else find_user_units(self._environ)
        return find_own_unit(folder / UNIT, folder / OLD_UNIT)

    @property
    def is_installed(self) -> bool:
        return is_own_unit(self.unit)

    @property
    def is_beyond_us(self) -> bool:
        """True if only root may stop and start it, and this user is not root."""
        return self._is_system and os.geteuid() != 0

    def list_changes(self) -> list[Path]:
        """List the person's changes by `systemctl edit`, which override the unit."""
        return sorted(self.unit.with_name(f"{self.unit.name}.d").glob("*.conf"))

    def find_home(self) -> Path:
        """Return the home that the unit serves, with the person's changes."""
        found = Path(self._person, ".hermes")
        for file in (self.unit, *self.list_changes()):
            for line in file.read_text("utf-8", "replace").splitlines():
                if line.startswith("Environment="):
                    found = _find_home(line.partition("=")[2], self._person) or found
        return found

    def install(self, program: Path) -> Iterator[str]:
        """Install the service, and yield what was done, a line each.

        Raises:
            ConfigError: it requires root, or its user cannot reach the program.
            ServiceError: systemd is missing, another program's unit has this name, or the gateway did not start.
        """
        self.check_presence()
        check_owner(self.unit)
        if self._is_system:
            yield from self._prepare_machine(program)
        yield from _leave_old_name(self.unit.with_name(OLD_UNIT), self._control)
        self.unit.parent.mkdir(parents=True, exist_ok=True)
        write_file(self.unit, self.render(program).encode())
        if self._is_system:
            self.unit.chmod(0o644)
        yield f"written: {self.unit}"
        if changes := self.list_changes():
            yield f"what you changed counts over it: {', '.join(map(str, changes))}"
        self._control("daemon-reload")
        self._control("enable", UNIT)
        try:
            self._control("restart", UNIT)
        except ServiceError as error:
            raise ServiceError(f"{error}\nsee why with: {self._name_command('logs')}") from None
        yield "it runs, and starts again when it ends"
        if not self._is_system:
            yield _keep_lingering()
        if self._is_system:
            yield f"tokens and keys: each in a file of its own in {CREDENTIALS}, named as its variable is"
        yield f"its home is {self.home.root}; look at it with: {self._name_command('status')}"

    def uninstall(self) -> Iterator[str]:
        """Remove the service. Raises ServiceError if it is not installed, or systemd is missing."""
        self.check_presence()
        if not self.unit.exists():
            raise ServiceError(f"it is not installed as a service: {self.unit} not found")
        check_owner(self.unit)
        unit, changes = self.unit, self.list_changes()
        self._control("disable", "--now", unit.name)
        unit.unlink()
        self._control("daemon-reload")
        yield f"it has ended, and {unit} is gone"
        if changes:
            yield f"what you changed of it stays, and counts again when it is installed: {', '.join(map(str, changes))}"

    def start(self) -> None:
        """Start the service. Raises ServiceError if it did not get ready, or systemd is missing."""
        self._control("start", self.unit.name)

    def stop(self) -> None:
        """Stop the service until it or the machine is started again; to wait for its end, watch the lock of the home.

        Raises:
            ServiceError: systemd refused.
        """
        self._control("stop", "--no-block", self.unit.name)

    def is_running(self) -> bool:
        asked = ["is-active", "--quiet", self.unit.name]
        return self.is_installed and not find_problem() and self._call(asked).returncode == 0

    def describe(self) -> dict[str, str]:
        """Return systemd's facts about the service."""
        if why := find_problem():
            return {"service": f"none: {why}; {REMEDY}", "unit": str(self.unit)}
        if not self.unit.exists():
            return {"service": f"not installed; {self._name_command('install')} does it", "unit": str(self.unit)}
        if not self.is_installed:
            return {"service": "another program's: the gateway did not write this unit", "unit": str(self.unit)}
        told = self._call(["show", self.unit.name, "-p", ",".join(FACTS)]).stdout.splitlines()
        known = dict(line.split("=", 1) for line in told if "=" in line)
        state = f"{known.get('ActiveState', 'unknown')} ({known.get('SubState', '')}), pid {known.get('MainPID', '0')}"
        said = {"service": state, "says": known.get("StatusText", ""), "restarts": known.get("NRestarts", "0")}
        at_boot = known.get("UnitFileState", "") == "enabled" and (self._is_system or _is_lingering())
        boot = "yes" if at_boot else "no: it starts when you log in" if not self._is_system else "no"
        changes = {"changed by": ", ".join(map(str, self.list_changes()))} if self.list_changes() else {}
        mind = {"mind": f"Hermes uses this name too: run {self._name_command('install')}"}
        older = mind if self.unit.name == OLD_UNIT else {}
        end = known.get("Result", "")
        return {**said, "last end": end, "starts at boot": boot, "unit": str(self.unit), **changes, **older}

    def make_log_command(self, lines: int, *, follow: bool) -> list[str]:
        """Return the command that shows the journal of systemd; if that has no entries, the gateway's own log.

        Raises:
            ServiceError: neither was found.
        """
        journal = ["journalctl", "--unit" if self._is_system else "--user-unit", self.unit.name, "--no-pager"]
        with suppress(ServiceError):
            if call_program([*journal, "--quiet", "--lines=1"]).stdout.strip():
                return [*journal, f"--lines={max(lines, 0)}", *(["--follow"] if follow else [])]
        if not self.home.log.exists():
            raise ServiceError(f"no lines in the journal of systemd, and {self.home.log} not found")
        return make_tail_command(self.home.log, lines, follow=follow)

    def render(self, program: Path) -> str:
        """Render the unit, with this machine's paths of the program and the home."""
        name = "system.service" if self._is_system else "user.service"
        text = Path(__file__).with_name(name).read_text("utf-8")
        lines = []
        for line in text.splitlines():
            if line.startswith("ExecStart="):
                line = f"ExecStart={quote_word(str(program))} run"
                if not self._is_system and self.home.root != Path(self._person, ".hermes"):
                    line += f"\nEnvironment={quote_word(f'HERMES_HOME={self.home.root}')}"
            lines.append(line)
        return "\n".join(lines) + "\n"

    def _prepare_machine(self, program: Path) -> Iterator[str]:
        if os.geteuid() != 0:
            raise ConfigError(
                f"a service of the whole machine takes root\nrun: sudo {program} service install --system"
            )
        check_reach(program, SYSTEM_USER)
        try:
            pwd.getpwnam(SYSTEM_USER)
        except KeyError:
            shell = shutil.which("nologin", path="/usr/sbin:/sbin") or "/bin/false"
            run_program(["useradd", "--system", "--home-dir", str(SYSTEM_HOME), "--shell", shell, SYSTEM_USER])
            yield f"made: the user {SYSTEM_USER}"

    def check_presence(self) -> None:
        """Raise ServiceError if no manager can run the service."""
        if why := find_problem():
            raise ServiceError(f"{why}\n{REMEDY}")
        asked = self._call(["show", "-p", "Version"])
        if asked.returncode:
            why = f"systemd does not answer: {read_failure(asked)}"
            raise ServiceError(f"{why}\n{REMEDY if self._is_system else NO_MANAGER}")

    def _control(self, *words: str) -> None:
        done = self._call(words, LONGEST_CHANGE)
        if done.returncode:
            raise ServiceError(f"systemctl {' '.join(words)}: {read_failure(done)}")

    def _call(self, words: Sequence[str], patience: float = PATIENCE) -> "subprocess.CompletedProcess[str]":
        whose = [] if self._is_system else ["--user"]
        return call_program(["systemctl", *whose, *words], patience)

    def _name_command(self, verb: str) -> str:
        return f"hermes-gateway service {verb}{' --system' if self._is_system else ''}"


def _leave_old_name(old: Path, control: Callable[..., None]) -> Iterator[str]:
    """End our unit of the old name, and move the changes to that unit; Hermes's unit stays."""
    if not is_own_unit(old):
        return
    control("disable", "--now", OLD_UNIT)
    changes, place = old.with_name(f"{OLD_UNIT}.d"), old.with_name(f"{UNIT}.d")
    if changes.is_dir() and not place.exists():
        changes.rename(place)
    old.unlink()
    yield f"its unit was {old}, a name that Hermes uses too; that file is gone"


def find_problem() -> str:
    """Return why systemd cannot run a service here; "": it can."""
    if not shutil.which("systemctl"):
        return "this machine has no systemd"
    return "" if STARTED.is_dir() else "this machine, or this container, was not started by systemd"


def _keep_lingering() -> str:
    """Keep a person's service after their last login, which requires lingering; return what holds now."""
    if _is_lingering():
        return "it starts at boot, and stays when you log out"
    try:
        run_program(["loginctl", "enable-linger", getpass.getuser()])
    except ServiceError as error:
        why = str(error).partition("\n")[0]
        return f"it ends when you log out, until you run: loginctl enable-linger ({why})"
    return "it starts at boot, and stays when you log out: lingering was switched on for you"


def _is_lingering() -> bool:
    try:
        said = run_program(["loginctl", "show-user", getpass.getuser(), "--property=Linger", "--value"])
    except ServiceError:
        return False
    return said.strip() == "yes"


def make_tail_command(log: Path, lines: int, *, follow: bool) -> list[str]:
    return ["tail", "-n", str(max(lines, 0)), *(["-F"] if follow else []), str(log)]


def _find_home(line: str, person: str) -> Path | None:
    """Return the value of HERMES_HOME in the text behind `Environment=`."""
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    values = [word.removeprefix("HERMES_HOME=") for word in words if word.startswith("HERMES_HOME=")]
    return Path(values[-1].replace("%h", person).replace("%%", "%")) if values else None


def quote_word(word: str) -> str:
    """Quote one word for a line of a unit, whatever is in it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return escaped if escaped == word and not any(map(str.isspace, word)) and "'" not in word else f'"{escaped}"'


def call_program(command: Sequence[str], patience: float = PATIENCE) -> "subprocess.CompletedProcess[str]":
    """Run a program in its own process group: Ctrl-C in an upgrade, which goes on, does not end it."""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            stdin=subprocess.DEVNULL,
            process_group=0,
            check=False,
        )
    except FileNotFoundError:
        raise ServiceError(f"{command[0]} not found on this machine") from None
    except subprocess.TimeoutExpired:
        raise ServiceError(f"{command[0]} does not answer: {' '.join(command)}") from None


def run_program(command: Sequence[str]) -> str:
    """Return the output of a program. Raises ServiceError if it failed."""
    done = call_program(command)
    if done.returncode:
        raise ServiceError(f"{' '.join(command)}: {read_failure(done)}")
    return done.stdout


def read_failure(done: "subprocess.CompletedProcess[str]") -> str:
    """Return the error text of a failed program, in one line."""
    return to_one_line("; ".join(done.stderr.strip().splitlines()), 300)
