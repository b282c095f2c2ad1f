"""`hermes-gateway backup`: copies of the journal, made while the gateway runs, and put back when it does not."""

import argparse
import time
from pathlib import Path

from gateway.cli.output import print_note, show_result
from gateway.config.home import Home
from gateway.engine.sqlite.backup import JournalContents, create_backup, restore_backup, verify_journal
from gateway.errors import ExitCode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    create = verbs.add_parser("create", help="copy the journal as it is now, and verify the copy")
    create.add_argument(
        "file", nargs="?", help="where to; by default into the home's backups, with the time as its name"
    )
    check = verbs.add_parser("verify", help="read a copy, or the journal itself, from end to end")
    check.add_argument("file", nargs="?", help="by default the journal")
    back = verbs.add_parser("restore", help="put a copy in the place of the journal; the old one is kept beside it")
    back.add_argument("file", help="the copy")
    for verb in (create, check, back):
        verb.add_argument("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace, home: Home) -> int:
    """1 where records are damaged; a copy with such a record is kept, for all the others in it."""
    damaged: tuple[str, ...] = ()
    if args.verb == "restore":
        print_note(f"checking {args.file} ...")
        old = restore_backup(Path(args.file), home.journal)
        remove_search_index(home.search)
        text = f"{home.journal} is now what {args.file} holds" + (f"; the old one is {old}" if old else "")
        facts: dict[str, object] = {"journal": str(home.journal), "replaced": str(old) if old else None}
    elif args.verb == "verify":
        path = Path(args.file) if args.file else home.journal
        found = verify_journal(path)
        text = f"{path} {describe(found)}: {found.records} records, {found.size} bytes"
        facts, damaged = list_facts(path, found), found.damaged
    else:
        path = Path(args.file) if args.file else home.backups / time.strftime("%Y%m%d-%H%M%S.db")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        print_note(f"copying {home.journal} ...")
        found = create_backup(home.journal, path)
        text = f"{path}: {found.records} records, {found.size} bytes"
        facts, damaged = list_facts(path, found), found.damaged
    show_result(facts, text, as_json=args.json)
    for one in damaged:
        print_note(f"{one} is not as it was written: the disk has changed it; an older backup may have it whole")
    return int(ExitCode.FAILED if damaged else ExitCode.OK)


def describe(found: JournalContents) -> str:
    """As far as checksums tell."""
    if found.damaged:
        return f"has {len(found.damaged)} damaged records"
    return (
        f"is whole ({found.unchecked} records of an older version have no checksum)" if found.unchecked else "is whole"
    )


def list_facts(path: Path, found: JournalContents) -> dict[str, object]:
    counted = {"records": found.records, "size": found.size, "unchecked": found.unchecked}
    return {"file": str(path), **counted, "damaged": list(found.damaged)}


def remove_search_index(search: Path) -> None:
    """The index for searching was read from another journal; the next gateway makes it anew."""
    for suffix in ("", "-wal", "-shm"):
        search.with_name(search.name + suffix).unlink(missing_ok=True)
