"""The services of Hermes on this machine: two programs that read one bot take each other's messages."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from gateway.cli.service.systemd import call_program
from gateway.cli.service.units import OLD_UNIT, SYSTEM_UNITS, ServiceError, find_user_units, is_own_unit
from gateway.config.permissions import make_finding
from gateway.yaml_source.tree import Finding

NAMES = ("hermes-gateway*.service", "ai.hermes.gateway*.plist")  # one for each profile of Hermes


def find_hermes_units(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield each installed one and, if it runs, why and how to stop it."""
    agents = Path(environ.get("HOME") or Path.home(), "Library", "LaunchAgents")
    for folder in (find_user_units(environ), SYSTEM_UNITS, agents):
        for unit in sorted(file for name in NAMES for file in folder.glob(name) if not is_own_unit(file)):
            asked, end = _make_commands(unit, is_of_person=folder != SYSTEM_UNITS)
            if _is_running(asked):
                why = "it runs; where both have the token of one bot, each takes messages from the other"
                yield unit, f"{why}; stop it: {end}"
            else:
                yield unit, ""


def check_own_units(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Find units of ours under the name that Hermes would overwrite."""
    for folder, option in ((find_user_units(environ), ""), (SYSTEM_UNITS, " --system")):
        if is_own_unit(unit := folder / OLD_UNIT):
            what = "Hermes's service has this name too, and would be written over it"
            yield make_finding(unit, what, f"run: hermes-gateway service install{option}")


def _make_commands(unit: Path, *, is_of_person: bool) -> tuple[list[str], str]:
    """Return the command that asks if it runs, and the command by which a person stops it for good."""
    if unit.suffix == ".plist":
        return ["launchctl", "list", unit.stem], f"launchctl unload {unit}"
    systemctl = ["systemctl", *(["--user"] if is_of_person else [])]
    words = " ".join(systemctl)
    return [*systemctl, "is-active", "--quiet", unit.name], f"{words} disable --now {unit.stem}"


def _is_running(asked: list[str]) -> bool:
    with suppress(ServiceError):
        return call_program(asked).returncode == 0
    return False
