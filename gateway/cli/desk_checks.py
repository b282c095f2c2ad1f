"""`doctor --desk`: the programs on this desk, and in which cases they run a tool without asking the gateway."""

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gateway.adapters.shared.folder import load_settings_schema
from gateway.cli.output import apply_style, print_lines, print_text, show_json
from gateway.config.desk_settings import DeskSettings
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import load_configuration
from gateway.config.permissions import make_finding
from gateway.desk.codex import check_trust
from gateway.desk.programs import PROGRAMS, Program
from gateway.desk.settings_file import find_file, find_gateways, has_ended_hooks, has_own_lines, list_own_hooks
from gateway.errors import ConfigError, ExitCode
from gateway.logs.text import to_one_line
from gateway.yaml_source.tree import Finding

VERSION = re.compile(r"(?<!\d)\d+(?:\.\d+)+")
VERSION_SECONDS = 20.0


class DeskReport(NamedTuple):
    """A program, its version ("": it was not found), whether it is connected, and what stays open."""

    program: Program
    version: str
    is_connected: bool
    findings: tuple[Finding, ...]


def show_desk(home: Home, *, as_json: bool) -> int:
    """Print what stays open on this desk."""
    environ = get_process_environment()
    settings = load_configuration(load_settings_schema(), home, environ).settings.desk
    reports = [check_program(program, home, settings, environ) for program in PROGRAMS.values()]
    if as_json:
        show_json({"programs": [describe_report(one) for one in reports]})
    else:
        for one in reports:
            show_report(one)
    return ExitCode.FAILED if any(one.findings for one in reports) else ExitCode.OK


def check_program(program: Program, home: Home, settings: DeskSettings, environ: Mapping[str, str]) -> DeskReport:
    path, version = find_file(program, environ), find_version(program, environ)
    try:
        gateways = find_gateways(program, path)
    except ConfigError as error:
        what, _, remedy = str(error).partition("\n")
        return DeskReport(program, version, False, (make_finding(path, what, remedy),))
    if not gateways:
        return DeskReport(program, version, False, ())
    findings = [*check_lines(program, path, home, settings, gateways), *check_version(program, version, path)]
    return DeskReport(program, version, True, (*findings, *(check_codex(path) if program.name == "codex" else ())))


def check_codex(path: Path) -> Iterator[Finding]:
    """Find the hooks of `connect codex` that Codex does not run, about which it says nothing."""
    with suppress(ConfigError):
        if skipped := check_trust(path, list_own_hooks(PROGRAMS["codex"], path)):
            what = f"Codex does not run these hooks of the gateway: {', '.join(skipped)}"
            yield make_finding(path, what, "start `codex`, and choose `Trust all and continue`")


def check_lines(
    program: Program, path: Path, home: Home, settings: DeskSettings, gateways: frozenset[str]
) -> Iterator[Finding]:
    """Yield the faults of the lines in the program's settings, and of the gateway that they ask."""
    again, own = f"hermes-gateway connect {program.name}", str(home.desk_socket)
    for other in sorted(gateways - {own}):
        what = f"these lines ask another gateway, at {other}"
        yield make_finding(path, what, f"run `doctor --desk` there, or ask this one: {again}", "warning")
    if has_ended_hooks(path):
        yield make_finding(path, "`disableAllHooks` ends all hooks, so the program asks for no tool", "take it out")
    if own not in gateways:
        return
    if not has_own_lines(program, path, home.desk_socket, settings):
        yield make_finding(path, "lines of ours are missing, or other than `connect` writes them now", again)
    if not is_answered(home.desk_socket):
        what = f"no gateway answers, so a tool gets what `desk.down: {settings.down}` says"
        yield make_finding(home.desk_socket, what, "start it: hermes-gateway run")
    if settings.down == "pass":
        what = "`desk.down: pass` lets each tool run while the gateway is down"
        yield make_finding(home.config, what, "hermes-gateway config set desk.down ask", "warning")


def check_version(program: Program, version: str, path: Path) -> Iterator[Finding]:
    """Yield a finding if the program runs a tool when our command itself fails."""
    if not version:
        what = f"`{program.name}` was not found, so its version is unknown"
        yield make_finding(path, what, f"look at `{program.name} --version` yourself", "warning")
    elif not program.blocks_from or parse_version(version) < parse_version(program.blocks_from):
        what = f"{program.title} {version} runs a tool if our command is missing, or is killed"
        helps = (
            f"{program.title} {program.blocks_from} denies it: update"
            if program.blocks_from
            else "no version denies it"
        )
        yield make_finding(path, what, helps, "warning")


def find_version(program: Program, environ: Mapping[str, str]) -> str:
    """Return the version of the program that this person would start; "" if it was not found."""
    found = shutil.which(program.name, path=environ.get("PATH"))
    try:
        done = subprocess.run(
            [found or "", "--version"],
            check=False,
            capture_output=True,
            text=True,
            timeout=VERSION_SECONDS,
            env=dict(environ),
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    version = VERSION.search(done.stdout)
    return version[0] if version else ""


def parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def is_answered(path: Path) -> bool:
    """Return True if a gateway accepts programs at this socket."""
    with socket.socket(socket.AF_UNIX) as one:
        try:
            one.connect(str(path))
        except OSError:
            return False
    return True


def describe_report(one: DeskReport) -> dict[str, object]:
    findings = [finding.as_fields() for finding in one.findings]
    return {
        "program": one.program.name,
        "version": one.version,
        "connected": one.is_connected,
        "findings": findings,
    }


def show_report(one: DeskReport) -> None:
    named = f"{one.program.title} {one.version}".strip()
    fine = "not connected" if not one.is_connected else apply_style("fine", "green")
    print_text(f"{named}: {'' if one.findings else fine}".rstrip())
    for finding in one.findings:
        print_lines(to_one_line(f"{finding.place}: {finding.what}"), "  ")
        print_lines(to_one_line(finding.remedy), "    ")
