"""`hermes-gateway config`: check, show and change the configuration; its path and its schema."""

import argparse
import json
import sys
from contextlib import suppress
from functools import partial
from typing import Any

import yaml

from gateway.adapters.shared.folder import load_settings_schema
from gateway.backup.shared_journal import JournalServers, find_servers, load_shared_journal
from gateway.chats.rules import KEPT_ORIGIN
from gateway.cli.config_change import change_setting, find_running_origins, open_configuration, undo_setting
from gateway.cli.output import (
    add_json_option,
    apply_style,
    escape_text,
    print_note,
    print_text,
    show_answer,
    show_json,
    show_result,
    show_table,
)
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import find_schema, load_configuration, read_configuration
from gateway.config.reference import SettingValue, as_text, build_settings_schema, list_values, values_of
from gateway.control.client import call_gateway
from gateway.daemon.hooks import list_sources
from gateway.daemon.journal import find_missing_client
from gateway.daemon.unknown_names import find_unknown_hooks, find_unknown_prices
from gateway.daemon.web import find_bad_certificate
from gateway.daemon.webhooks import find_bad_secrets
from gateway.engine.sqlite.backup import read_in
from gateway.errors import ExitCode, GatewayError
from gateway.logs.text import to_one_line
from gateway.records import records, subjects
from gateway.yaml_source.tree import Finding

MOST_KEPT = 10_000  # chats with their own settings


class UnknownSettingError(GatewayError):
    """The configuration has no setting of the requested name."""

    exit = ExitCode.USAGE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    check = verbs.add_parser("check", help="list every error in the configuration; exit 78 if there is any")
    add_json_option(check)
    show = verbs.add_parser("show", help="show the settings in effect, with the defaults; secrets stay hidden")
    show.add_argument("section", nargs="?", default="", help="only this section or setting, such as `logs.level`")
    show.add_argument("--origin", action="store_true", help="show where each value was set")
    show.add_argument("--running", action="store_true", help="the settings of the running gateway, and how they differ")
    add_json_option(show)
    path = verbs.add_parser("path", help="print the path of the configuration file")
    path.add_argument("--json", action="store_true", help="print one object with all paths of this home")
    change = verbs.add_parser("set", help="set a value in the file where it is set now; secrets go into `.env`")
    change.add_argument("key", help="the setting, such as `sessions.idle`")
    change.add_argument("value", help="the value; a list takes commas, an object is YAML: `{a: 1}`")
    add_json_option(change)
    unset = verbs.add_parser("unset", help="remove a value, so that the next source or the default counts")
    unset.add_argument("key", help="the setting, such as `sessions.idle`")
    add_json_option(unset)
    undo = verbs.add_parser("undo", help="undo the last `set` or `unset`, unless its files have changed since")
    add_json_option(undo)
    verbs.add_parser("edit", help="open the file in your editor ($VISUAL or $EDITOR), then check it")
    verbs.add_parser("schema", help="print the JSON schema of the file, for editors")


def run(args: argparse.Namespace, home: Home) -> int | None:
    match args.verb:
        case "check":
            return check_configuration(home, as_json=args.json)
        case "show" if args.running:
            show_running(home, as_json=args.json)
        case "show":
            show_settings(home, args.section, with_origin=args.origin, as_json=args.json)
        case "set" | "unset":
            change_setting(home, args.key, getattr(args, "value", None), as_json=args.json)
        case "undo":
            undo_setting(home, as_json=args.json)
        case "edit":
            return change_file(home)
        case "path":
            show_paths(home, as_json=args.json)
        case _:
            schema = find_schema(load_settings_schema(), home, get_process_environment())
            print(json.dumps(build_settings_schema(schema), indent=2, ensure_ascii=False))
    return None


def change_file(home: Home) -> int:
    """Open the file in the person's editor, and print all that is wrong with it then."""
    open_configuration(home)
    is_wrong = check_configuration(home, as_json=False)
    if not is_wrong and find_running_origins(home):
        print_note("to use it now: hermes-gateway reload")
    return is_wrong


def check_configuration(home: Home, *, as_json: bool) -> int:
    """Print all findings; for people also a good result."""
    configuration, findings = read_configuration(load_settings_schema(), home, get_process_environment())
    if configuration:
        findings += find_unknown_hooks(configuration, list_sources(home, configuration))
        for find in (find_unknown_prices, find_missing_client, find_bad_secrets, find_bad_certificate):
            findings += find(configuration)
    is_right = all(finding.severity != "error" for finding in findings)
    if as_json:
        found = [finding.as_fields() for finding in findings]
        show_json({"ok": is_right, "file": str(home.config), "findings": found})
    else:
        for finding in findings:
            print_text(_format_finding(finding))
        _print_summary(home, findings)
    return ExitCode.OK if is_right else ExitCode.CONFIG


def _print_summary(home: Home, findings: list[Finding]) -> None:
    wrong = sum(finding.severity == "error" for finding in findings)
    if wrong:
        print_note(f"{wrong} {'thing is' if wrong == 1 else 'things are'} wrong; the gateway does not start like this")
    elif home.config.exists():
        print_text(f"{home.config} {'can be used as it is' if findings else 'is right'}")
    else:
        print_text(f"{home.config} not found; the defaults are in effect, and they are right")


def _format_finding(finding: Finding) -> str:
    severity = apply_style(finding.severity, "red" if finding.severity == "error" else "yellow")
    return f"{to_one_line(str(finding.place))}: {severity}: {to_one_line(finding.what)}; {to_one_line(finding.remedy)}"


def show_settings(home: Home, section: str, *, with_origin: bool, as_json: bool) -> None:
    """Print the settings in force: as the file would have them, or each with its origin."""
    configuration = load_configuration(load_settings_schema(), home, get_process_environment())
    data = _find_part(values_of(configuration.settings), section)
    listed = list_values(configuration, data, section)
    kept = list_chat_rules(home, find_servers(configuration)) if section in ("", "chats") else []
    if as_json:
        origins = {one.name: one.origin for one in (*listed, *kept)}
        in_chats = {"in_chats": {one.name: one.value for one in kept}} if kept else {}
        show_json({"settings": data, **in_chats, **({"origins": origins} if with_origin else {})})
    elif with_origin:
        show_table(("setting", "value", "set by"), [*listed, *kept])
    elif isinstance(data, dict | list):
        text = yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=100)
        text += "".join(f"# {one.name}: {one.value} (by {one.origin})\n" for one in kept)
        print(escape_text(text) if sys.stdout.isatty() else text, end="")
    else:
        print(escape_text(as_text(data)))


def list_chat_rules(home: Home, servers: JournalServers | None) -> list[SettingValue]:
    """List the settings that admins made in chats, from the journal. `doctor` reports a journal that cannot be read."""
    found: list[SettingValue] = []
    with suppress(GatewayError, ValueError):
        where = subjects.CHAT_SUBJECTS
        read = load_shared_journal(servers).read if servers else partial(read_in, home.journal)
        for record in read(where, MOST_KEPT):
            if isinstance(kept := records.decode(record.data), records.ChatRuleRecord):
                found += [SettingValue(f"chats.{kept.chat}.{one}", it, KEPT_ORIGIN) for one, it in kept.values.items()]
    return sorted(found)


def show_running(home: Home, *, as_json: bool) -> None:
    """Print the settings of the running gateway, and those whose source has another value now."""
    show_answer(call_gateway(home.socket, "config.show"), show_differences, as_json=as_json)


def show_differences(found: dict[str, Any]) -> None:
    show_table(
        ("setting", "value", "set by"), [(one["name"], one["value"], one["origin"]) for one in found["settings"]]
    )
    if found["differences"]:
        names = to_one_line(", ".join(found["differences"]))
        print_note(f"set to something else since, and not in force: {names}; hermes-gateway reload")


def _find_part(data: Any, section: str) -> Any:
    for key in filter(None, section.split(".")):
        if not isinstance(data, dict) or key not in data:
            known = ", ".join(data) if isinstance(data, dict) else "nothing"
            raise UnknownSettingError(f"unknown setting `{to_one_line(section, 100)}`\nknown here: {known}")
        data = data[key]
    return data


def show_paths(home: Home, *, as_json: bool) -> None:
    names = ("root", "config", "env", "hooks", "plugins", "skills", "boot_md", "journal", "log", "socket", "lock")
    show_result({name: str(getattr(home, name)) for name in names}, str(home.config), as_json=as_json)
