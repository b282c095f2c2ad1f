"""`hermes-gateway doctor`: look for what is wrong, and say what helps; exit 1 if something is."""

import argparse

from gateway.cli.doctor_checks import CHECKS, read_target
from gateway.cli.output import apply_style, show_json
from gateway.config.home import Home, get_process_environment
from gateway.errors import ExitCode
from gateway.hermes import doctor
from gateway.logs.text import to_one_line
from gateway.yaml_source import Finding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hermes", action="store_true", help="what of a home made by Hermes works here, and why not")
    parser.add_argument("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace, home: Home) -> int:
    if args.hermes:
        return doctor.run(home, get_process_environment(), as_json=args.json)
    who = read_target(home, get_process_environment())
    found = {name: list(check(who)) for name, check in CHECKS.items()}
    if args.json:
        told = {name: [finding_to_json(finding) for finding in findings] for name, findings in found.items()}
        show_json({"ok": not any(found.values()), "running": who.facts is not None, "checks": told})
    else:
        show_findings(found, is_running=who.facts is not None)
    return int(ExitCode.FAILED if any(found.values()) else ExitCode.OK)


def show_findings(found: dict[str, list[Finding]], *, is_running: bool) -> None:
    for name, findings in found.items():
        print(f"{name}: {'' if findings else apply_style('fine', 'green')}".rstrip())
        for finding in findings:
            print(f"  {to_one_line(f'{finding.place}: {finding.what}')}\n    {to_one_line(finding.remedy)}")
    if not is_running:
        print("the gateway does not run; what only it knows was not looked at. Start it: hermes-gateway run")


def finding_to_json(finding: Finding) -> dict[str, str]:
    return {
        "place": str(finding.place),
        "what": finding.what,
        "remedy": finding.remedy,
        "severity": finding.severity,
    }
