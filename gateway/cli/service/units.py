"""The files of services: ours has an older and a newer name, and Hermes's service has the older one too."""

import plistlib
import shlex
from collections.abc import Mapping
from pathlib import Path
from xml.parsers.expat import ExpatError

from gateway.cli.program import PROGRAM
from gateway.errors import GatewayError

UNIT = "chat-gateway.service"
OLD_UNIT = "hermes-gateway.service"  # our name up to version 0.1; Hermes's own unit has it too
DESCRIPTION = "Description=hermes-gateway, a chat gateway for AI agents"  # `service install` has always written it
LABEL, OLD_LABEL = "chat-gateway", "hermes-gateway"  # names of launchd's agents
SYSTEM_UNITS = Path("/etc/systemd/system")


def find_user_units(environ: Mapping[str, str]) -> Path:
    """Return the folder of this person's units."""
    person = environ.get("HOME") or str(Path.home())
    return Path(environ.get("XDG_CONFIG_HOME") or f"{person}/.config") / "systemd" / "user"


class ServiceError(GatewayError):
    """The manager of services refused, or is missing."""


def find_own_unit(place: Path, older: Path) -> Path:
    """Return our file: at its older place until it is moved."""
    return older if not place.exists() and is_own_unit(older) else place


def check_owner(unit: Path) -> None:
    """Raise ServiceError if another program has written this file."""
    if unit.exists() and not is_own_unit(unit):
        what = f"{unit} was not written by hermes-gateway; it stays as it is"
        raise ServiceError(f"{what}\nlook at it, and move it away if you do not need it")


def is_own_unit(file: Path) -> bool:
    """Tell if `service install` wrote it: it starts this program, and has the line that we write."""
    try:
        content = file.read_bytes()
    except OSError:
        return False
    command = _read_agent(content) if file.suffix == ".plist" else _read_unit(content.decode("utf-8", "replace"))
    return bool(command) and Path(command[0]).name == PROGRAM and command[-1] == "run"


def _read_unit(text: str) -> list[str]:
    """Return the command of a unit; empty if our line is missing."""
    lines = [line.strip() for line in text.splitlines()]
    starts = [line.partition("=")[2].lstrip("-@:+! ") for line in lines if line.startswith("ExecStart=")]
    try:
        return shlex.split(starts[-1]) if starts and DESCRIPTION in lines else []
    except ValueError:
        return []


def _read_agent(content: bytes) -> list[str]:
    """Return the command of an agent for launchd; its label takes the place of our line."""
    try:
        said = plistlib.loads(content)
        return list(map(str, said["ProgramArguments"])) if said["Label"] in (LABEL, OLD_LABEL) else []
    except (ValueError, KeyError, TypeError, ExpatError):
        return []
