"""`hermes-gateway config`: is the configuration right, what is in force and why, where is it, what can stand in it."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from gateway.adapters.shared.folder import load_settings_schema
from gateway.cli.output import apply_style, escape_text, print_note, show_json, show_result, show_table
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import Configuration, load_configuration, read_configuration
from gateway.config.reference import build_json_schema, values_of
from gateway.errors import ExitCode, GatewayError
from gateway.logs.text import to_one_line
from gateway.yaml_source import Finding


class UnknownSettingError(GatewayError):
    """What was asked for is not in the configuration's shape."""

    exit = ExitCode.USAGE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    check = verbs.add_parser("check", help="say everything that is wrong with it; exit 78 if something is")
    check.add_argument("--json", action="store_true", help="print one object")
    show = verbs.add_parser("show", help="show the settings in force, with the defaults; secrets stay hidden")
    show.add_argument("section", nargs="?", default="", help="only this section or setting, for instance `logs.level`")
    show.add_argument("--origin", action="store_true", help="say of each setting where it was set")
    show.add_argument("--json", action="store_true", help="print one object")
    path = verbs.add_parser("path", help="print where the configuration file is")
    path.add_argument("--json", action="store_true", help="print one object with all paths of this home")
    verbs.add_parser("schema", help="print the JSON schema of the file, for editors")


def run(args: argparse.Namespace, home: Home) -> int | None:
    match args.verb:
        case "check":
            return check_configuration(home, as_json=args.json)
        case "show":
            show_settings(home, args.section, with_origin=args.origin, as_json=args.json)
        case "path":
            show_paths(home, as_json=args.json)
        case _:
            print(json.dumps(build_json_schema(load_settings_schema()), indent=2, ensure_ascii=False))
    return None


def check_configuration(home: Home, *, as_json: bool) -> int:
    """All findings; for people the good news too."""
    configuration, findings = read_configuration(load_settings_schema(), home, get_process_environment())
    if as_json:
        show_json(
            {"ok": configuration is not None, "file": str(home.config), "findings": [*map(_finding_to_json, findings)]}
        )
    else:
        for finding in findings:
            print(_format_finding(finding))
        _print_summary(home, findings)
    return int(ExitCode.OK if configuration else ExitCode.CONFIG)


def _print_summary(home: Home, findings: list[Finding]) -> None:
    wrong = sum(finding.severity == "error" for finding in findings)
    if wrong:
        print_note(f"{wrong} {'thing is' if wrong == 1 else 'things are'} wrong; the gateway does not start like this")
    elif home.config.exists():
        print(f"{home.config} is right")
    else:
        print(f"there is no {home.config}; the defaults hold, and they are right")


def _finding_to_json(finding: Finding) -> dict[str, Any]:
    place = finding.place
    return {
        "severity": finding.severity,
        "source": place.source,
        "line": place.line or None,
        "column": place.column or None,
        "what": finding.what,
        "remedy": finding.remedy,
    }


def _format_finding(finding: Finding) -> str:
    severity = apply_style(finding.severity, "red" if finding.severity == "error" else "yellow")
    return f"{to_one_line(str(finding.place))}: {severity}: {to_one_line(finding.what)}; {to_one_line(finding.remedy)}"


def show_settings(home: Home, section: str, *, with_origin: bool, as_json: bool) -> None:
    """What holds: as the file would say it, or each setting with where it was set."""
    configuration = load_configuration(load_settings_schema(), home, get_process_environment())
    data = _find_part(values_of(configuration.settings), section)
    origins = dict(_list_origins(configuration, data, section))
    if as_json:
        show_json({"settings": data, **({"origins": origins} if with_origin else {})})
    elif with_origin:
        rows = ((name, value, origins[name]) for name, value in _flatten(data, section))
        show_table(("setting", "value", "set by"), rows)
    elif isinstance(data, dict | list):
        text = yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=100)
        print(escape_text(text) if sys.stdout.isatty() else text, end="")
    else:
        print(escape_text(_format_value(data)))


def _find_part(data: Any, section: str) -> Any:
    for key in filter(None, section.split(".")):
        if not isinstance(data, dict) or key not in data:
            known = ", ".join(data) if isinstance(data, dict) else "nothing"
            raise UnknownSettingError(f"there is no setting `{to_one_line(section, 100)}`\nhere there is: {known}")
        data = data[key]
    return data


def _list_origins(configuration: Configuration, data: Any, section: str) -> Iterator[tuple[str, str]]:
    for name, _ in _flatten(data, section):
        parts = name.split(".")
        above = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
        place = next((configuration.origins[one] for one in above if one in configuration.origins), None)
        yield name, str(place) if place else "default"


def _flatten(data: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, dict) and data:
        for key, below in data.items():
            yield from _flatten(below, f"{name}.{key}" if name else key)
    else:
        yield name, _format_value(data)


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def show_paths(home: Home, *, as_json: bool) -> None:
    names = ("root", "config", "env", "hooks", "plugins", "skills", "boot_md", "journal", "log", "socket", "lock")
    show_result({name: str(getattr(home, name)) for name in names}, str(home.config), as_json=as_json)
