"""`hermes-gateway people`: the people of this gateway, and one person's data: shown, exported, or forgotten."""

import argparse
import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

from gateway.cli.output import (
    add_json_option,
    print_note,
    print_text,
    show_answer,
    show_fields,
    show_json,
    show_table,
    wait_for_yes,
)
from gateway.cli.sessions import format_moment
from gateway.config.home import Home
from gateway.control.client import ControlClient, call_gateway
from gateway.errors import ExitCode, GatewayError
from gateway.files.folders import open_plain_file
from gateway.logs.text import to_one_line
from gateway.messages.roles import ROLES
from gateway.yaml_source.units import format_count

ORDERS = ("name", "id", "latest", "sessions", "role")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="list the people who may write or have written, with their roles")
    listed.add_argument("--search", default="", metavar="TEXT", help="only with this in their name or id")
    listed.add_argument("--sort", choices=ORDERS, default="name", help="in which order (name)")
    listed.add_argument("--platform", default="", metavar="NAME", help="only people of this network")
    listed.add_argument("--role", choices=(*ROLES, "none"), default="", help="only with this role")
    listed.add_argument("-n", "--limit", type=int, default=-1, metavar="N", help="at most N (all)")
    show = verbs.add_parser("show", help="show the data of a person")
    export = verbs.add_parser("export", help="export all data of a person as an archive")
    export.add_argument("-o", "--output", metavar="FILE", help="the file to write (default: a new ID.zip here)")
    forget = verbs.add_parser("forget", help="remove all data of a person permanently")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    for one in (show, export, forget):
        one.add_argument("people", nargs="+", metavar="ID", help="NETWORK:ID, as `list` shows it")
    add_json_option(listed, show, forget)


def run(args: argparse.Namespace, home: Home) -> int:
    match args.verb:
        case "list":
            wanted = {name: getattr(args, name) for name in ("search", "sort", "platform", "role", "limit")}
            show_answer(call_gateway(home.socket, "people.list", **wanted), show_list, as_json=args.json)
        case "show":
            show_people(
                [call_gateway(home.socket, "people.show", person=one) for one in args.people], as_json=args.json
            )
        case "export":
            export_people(args, home)
        case "forget":
            return forget_people(args, home)
    return ExitCode.OK


def show_list(found: dict[str, Any]) -> None:
    rows = [
        (one["name"], one["person"], one["role"] or "none", one["sessions"] or "", format_moment(one["last_active"]))
        for one in found["people"]
    ]
    show_table(
        ("name", "person", "role", "sessions", "last spoke"), rows, "no such person is authorized or has written"
    )
    if (left := found["count"] - len(rows)) > 0:
        print_note(f"{left} more: the same with --limit {found['count']}")


def show_people(found: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        show_json({"people": found})
        return
    for one in found:
        show_fields(
            [
                (one["person"], one["role"] or "may not speak"),
                *([("name", one["name"])] if one["name"] else []),
                *_describe_access(one),
                ("conversations", len(one["conversations"])),
                ("of several", f"{len(one['shared'])} in which they wrote"),
                ("in the journal", f"{format_count(sum(one['records'].values()), 'record')} besides"),
                ("remembered", format_count(one["notes"], "note")),
                ("files", f"{one['files']}, {one['bytes']} bytes"),
                *_describe_unclear(one),
            ]
        )


def _describe_access(one: dict[str, Any]) -> list[tuple[str, str]]:
    paired = [f"paired on {format_moment(one['paired'])}"] if one["paired"] else []
    return [("allowed by", ", ".join((*one["settings"], *paired)))] if one["settings"] or paired else []


def _describe_unclear(one: dict[str, Any]) -> list[tuple[str, str]]:
    """Describe turns of an older version, which do not record their author."""
    says = "{} turns of before do not say whose they are: hermes-gateway sessions delete {}"
    return [("not known", says.format(count, key)) for key, count in one["unclear"].items()]


def export_people(args: argparse.Namespace, home: Home) -> None:
    if args.output and len(args.people) > 1:
        raise GatewayError("one file holds one person: leave --output away, or export them one by one")
    for person in args.people:
        path = Path(args.output or f"{person.replace(':', '-').replace('/', '-')}.zip")
        print_note(f"{path.absolute()}: {format_count(write_archive(home, person, path), 'part')}")


def write_archive(home: Home, person: str, path: Path) -> int:
    """Write a new file that only this user can read. An unfinished one is removed."""
    texts: dict[str, list[str]] = {}
    files: dict[str, str] = {}

    def note(kind: str, told: dict[str, str]) -> None:
        if kind == "piece":
            texts.setdefault(told["name"], []).append(told["text"])
        else:
            files[told["name"]] = told["path"]

    with ControlClient(home.socket, None) as client:
        said = client.call("people.export", {"person": person}, note)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, parts in texts.items():
                archive.writestr(name, "".join(parts))
            left_out = [place for name, place in files.items() if not add_file(archive, name, Path(place))]
    except BaseException:
        path.unlink()
        raise
    for place in left_out:
        print_note(f"{place}: left out, since it has gone or is not a plain file any more")
    return int(said["parts"]) - len(left_out)


def add_file(archive: zipfile.ZipFile, name: str, path: Path) -> bool:
    """Add a file; return False if it has gone since it was listed, or was replaced by a link or something else."""
    try:
        source = open_plain_file(path)
    except OSError:
        return False
    with source, archive.open(name, "w", force_zip64=True) as target:
        shutil.copyfileobj(source, target)
    return True


def forget_people(args: argparse.Namespace, home: Home) -> int:
    if not args.yes:
        if not sys.stdin.isatty():
            print_note("no data was removed, since no terminal can ask you; add --yes")
            return ExitCode.USAGE
        if not wait_for_yes(
            f"Forget {to_one_line(', '.join(args.people))}, with all their messages here, permanently?"
        ):
            return ExitCode.FAILED
    found = [call_gateway(home.socket, "people.forget", person=one) for one in args.people]
    if args.json:
        show_json({"forgotten": found})
    else:
        for one in found:
            describe_forgotten(one)
    return ExitCode.FAILED if any(one["busy"] for one in found) else ExitCode.OK


def describe_forgotten(one: dict[str, Any]) -> None:
    what = [
        (one["conversations"], "conversation"),
        (one["turns_of_shared"], "turn of a conversation of several"),
        (one["records"], "record"),
        (one["notes"], "note"),
        (one["files"], "file"),
    ]
    gone = ", ".join(f"{count} x {name}" for count, name in what if count)
    print_text(to_one_line(f"{one['person']} is forgotten: {gone or 'there was no data of this person'}"))
    print_text(f"sums and the record of activity call them {one['pseudonym']}")
    for key in one["busy"]:
        print_note(f"a turn in {key} did not end: forget them once more when it has")
    for _, text in _describe_unclear(one):
        print_note(text)
    if one["left"]:
        print_note("not removed, out of the gateway's reach:")
        for line in one["left"]:
            print_note(f"  {line}")
