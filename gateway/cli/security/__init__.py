"""`hermes-gateway security audit`: find what people could do that they should not, and its remedy; exit 1 for findings.

The checks are in modules by subject, each with a lasting id. None runs code of a hook, and none needs a running
gateway. A notice is good to know and no fault of the home: it does not change the exit code, and neither does a finding
that is accepted by `security.accepted`. `--fix` removes rights of other users to files and folders; a person decides on
all else.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gateway.cli.output import add_json_option, apply_style, print_lines, show_json
from gateway.cli.security import adapters, files, hooks, machine, people, tools
from gateway.cli.security.target import AuditCheck, AuditFault, AuditTarget, make_check, read_audit_target
from gateway.config.home import Home, get_process_environment
from gateway.errors import ExitCode
from gateway.logs.text import to_one_line


@make_check("config.accepted", "warning", "what was meant to be accepted is not")
def _find_unknown_accepted(target: AuditTarget) -> Iterator[AuditFault]:
    for name in target.settings.security.accepted:
        if name not in {check.id for check in CHECKS}:
            what = f"no check is called {name}"
            yield AuditFault(target.place_of("security.accepted"), what, f"take {name} out of security.accepted")


CHECKS: tuple[AuditCheck, ...] = tuple(
    one
    for part in (files, people, tools, hooks, adapters, machine, sys.modules[__name__])
    for one in vars(part).values()
    if isinstance(one, AuditCheck)
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    audit = verbs.add_parser("audit", help="list who can do too much; exit 1 if anything was found")
    audit.add_argument(
        "--fix", action="store_true", help="repair permissions of files and folders; change nothing else"
    )
    add_json_option(audit)


def run(args: argparse.Namespace, home: Home) -> int:
    if args.fix:
        repair_rights(read_audit_target(home, get_process_environment()))
    target = read_audit_target(home, get_process_environment())
    told, accepted = list[tuple[AuditCheck, AuditFault]](), list[tuple[AuditCheck, AuditFault]]()
    for one in find_faults(target):
        (accepted if is_allowed(one[0], target) else told).append(one)
    notices = [one for one in told if one[0].severity == "notice"]
    found = [one for one in told if one not in notices]
    if args.json:
        shown = {"findings": found, "notices": notices, "accepted": accepted}
        show_json({"checks": len(CHECKS)} | {key: [_to_json(*one) for one in some] for key, some in shown.items()})
    elif found:
        show_faults(told)
    else:
        print(f"nothing found: {len(CHECKS)} checks")
        for _, fault in notices:
            print_lines(to_one_line(f"to know: {fault.what}; {fault.remedy}", 1000), "")
    if accepted and not args.json:
        names = ", ".join(dict.fromkeys(check.id for check, _ in accepted))
        print_lines(f"accepted by security.accepted: {names}", "")
    return ExitCode.FAILED if found else ExitCode.OK


def find_faults(target: AuditTarget) -> Iterator[tuple[AuditCheck, AuditFault]]:
    """Yield all faults, in the order of the table."""
    for check in CHECKS:
        yield from ((check, fault) for fault in check.find(target))


def is_allowed(check: AuditCheck, target: AuditTarget) -> bool:
    """Return True if the configuration accepts the findings of this check."""
    return check.id in target.settings.security.accepted


def repair_rights(target: AuditTarget) -> None:
    """Remove the rights that others should not have; faults that remain are found again."""
    for check, fault in find_faults(target):
        for path in () if is_allowed(check, target) else fault.paths:
            with suppress(OSError):
                _take_rights(path, fault.bits)


def _take_rights(path: Path, bits: int) -> None:
    """Remove rights from a file itself, never from the target of a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode & 0o7777
        if mode & bits:
            os.fchmod(descriptor, mode & ~bits)
    finally:
        os.close(descriptor)


def show_faults(found: list[tuple[AuditCheck, AuditFault]]) -> None:
    """Print each fault below its id: what is wrong where, what it means, and the remedy."""
    for check, fault in found:
        print(apply_style(check.id, "red" if check.severity == "error" else "yellow"))
        print_lines(to_one_line(f"{fault.place}: {fault.what}", 1000), "    ")
        print_lines(check.means, "    ")
        print_lines(to_one_line(fault.remedy, 1000), "    ")
    counts = Counter(check.severity for check, _ in found)
    counted = ", ".join(f"{count} {severity}{'s' * (count > 1)}" for severity, count in sorted(counts.items()))
    print(f"{counted}, by {len(CHECKS)} checks")


def _to_json(check: AuditCheck, fault: AuditFault) -> dict[str, str]:
    shown = {"id": check.id, "severity": check.severity, "place": str(fault.place), "what": fault.what}
    return {**shown, "means": check.means, "remedy": fault.remedy}
