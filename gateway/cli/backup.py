"""`hermes-gateway backup`: copies of the home, made while the gateway runs, and restored while it does not.

A copy whose name ends in `.db` has only the journal, as earlier versions made all of them.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from gateway.adapters.shared.folder import load_settings_schema
from gateway.backup.archive import WrittenArchive, write_archive
from gateway.backup.archive_reader import ReadArchive, is_archive, read_archive
from gateway.backup.backup_folder import open_backup_folder
from gateway.backup.contents import ENV, JOURNAL, WORK_PREFIX, list_files
from gateway.backup.restore import restore_archive
from gateway.backup.shared_journal import JournalServers, find_servers, load_shared_journal
from gateway.cli.output import add_json_option, format_ago, print_note, show_progress, show_result
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import read_configuration
from gateway.daemon.home_lock import reserve_home
from gateway.engine.sqlite.backup import JournalContents, create_backup, restore_backup, verify_journal
from gateway.errors import EngineError, ExitCode
from gateway.yaml_source.units import format_count

JOURNAL_ENDING = ".db"
PATIENCE = 1.0  # seconds for a gateway that is about to end
MIGRATE = "hermes-gateway migrate --to nats"
Done: TypeAlias = tuple[dict[str, object], str, tuple[str, ...]]
EMPTY = JournalContents(0, 0, None, 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    create = verbs.add_parser("create", help="copy the home, and verify the copy")
    create.add_argument(
        "file",
        nargs="?",
        help="the file to write (default: backups/TIME in the home); NAME.db copies the journal alone",
    )
    create.add_argument("--with-env", action="store_true", help="also copy the secrets in .env")
    check = verbs.add_parser("verify", help="verify a backup or the journal; every byte is read")
    check.add_argument("file", nargs="?", help="the backup (default: the journal)")
    back = verbs.add_parser("restore", help="restore a backup into an empty home")
    back.add_argument("file", help="the copy")
    back.add_argument("--replace", action="store_true", help="replace what is there; the old files are kept aside")
    add_json_option(create, check, back)


def run(args: argparse.Namespace, home: Home) -> int:
    """Run the verb; return 1 for damaged records. A copy with such a record is kept, for all the others in it."""
    does = {"create": create, "verify": verify, "restore": restore}[args.verb]
    facts, text, damaged = does(args, home)
    show_result(facts, text, as_json=args.json)
    for one in damaged:
        print_note(f"{one} is not as it was written: the disk has changed it; an older backup may have it whole")
    return ExitCode.FAILED if damaged else ExitCode.OK


def create(args: argparse.Namespace, home: Home) -> Done:
    servers = read_servers(home)
    if args.file is None:
        with open_backup_folder(home.backups) as folder:
            made = write_home(home, folder / time.strftime("%Y%m%d-%H%M%S.tar.gz"), servers, with_env=args.with_env)
    elif args.file.endswith(JOURNAL_ENDING):
        path = Path(args.file)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with show_progress(f"copying {servers.url if servers else home.journal}"):
            found = load_shared_journal(servers).create_backup(path) if servers else create_backup(home.journal, path)
        return (
            list_facts(path, found),
            f"{path}: {format_count(found.records, 'record')}, {found.size} bytes",
            found.damaged,
        )
    else:
        made = write_home(home, Path(args.file), servers, with_env=args.with_env)
    for name, why in made.left_out.items():
        print_note(f"left out: {name}: {why}")
    journal = made.journal or EMPTY
    facts = {**list_facts(made.path, journal), "size": made.size, "files": made.files, "left_out": made.left_out}
    held = f"{format_count(made.files, 'file')}, {format_count(journal.records, 'record')}, {made.size} bytes"
    return facts, f"{made.path}: {held}", journal.damaged


def read_servers(home: Home) -> JournalServers | None:
    """Return the servers that keep the journal, if the configuration can be read."""
    configuration, _findings = read_configuration(load_settings_schema(), home, get_process_environment())
    if configuration:
        return find_servers(configuration)
    if not home.journal.exists():
        print_note(f"no journal in {home.root}, and {home.config} cannot be read, so NATS servers may keep one")
    return None


def write_home(home: Home, target: Path, servers: JournalServers | None, *, with_env: bool) -> WrittenArchive:
    paths = [home.journal, *(one.path for one in list_files(home, with_env=with_env) if not one.why_not)]
    total, done = sum(path.stat().st_size for path in paths if path.exists()), 0

    def count(read: int) -> None:
        nonlocal done
        done += read

    with show_progress(f"copying {home.root}", lambda: (min(done, total), total)):
        return write_archive(home, target, with_env=with_env, servers=servers, count=count)


def verify(args: argparse.Namespace, home: Home) -> Done:
    if not args.file and (servers := read_servers(home)):
        raise EngineError(
            f"{servers.url} keeps the journal, and no file here\nlook at the servers: hermes-gateway doctor; "
            "at a copy: hermes-gateway backup verify FILE"
        )
    path = Path(args.file) if args.file else home.journal
    with show_progress(f"checking {path}"):
        return verify_copy(path)


def verify_copy(path: Path) -> Done:
    if not (path.is_file() and is_archive(path)):
        found = verify_journal(path)
        text = f"{path} {describe(found)}: {format_count(found.records, 'record')}, {found.size} bytes"
        return list_facts(path, found), text, found.damaged
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=WORK_PREFIX) as work:
        read = read_archive(path, Path(work))
        journal = verify_journal(Path(work) / JOURNAL) if JOURNAL in read.digests else EMPTY
    facts = {**list_facts(path, journal), "size": path.stat().st_size, "files": len(read.digests)}
    made = f"made {format_ago(read.made)} of {read.home}"
    held = f"{format_count(len(read.digests), 'file')}, {format_count(journal.records, 'record')}"
    return facts, f"{path} {describe(journal)}: {held}, {made}", journal.damaged


def restore(args: argparse.Namespace, home: Home) -> Done:
    path = Path(args.file)
    if not path.is_file():
        raise EngineError(f"no backup was found at {path}")
    if not is_archive(path):
        with show_progress(f"checking {path}"):
            old = restore_backup(path, home.journal)
        remove_search_index(home.search)
        for note in describe_servers(home):
            print_note(note)
        text = f"{home.journal} is now what {path} holds" + (f"; the old one is {old}" if old else "")
        return {"journal": str(home.journal), "replaced": str(old) if old else None}, text, ()
    home.own_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # With the journal on NATS servers, this lock is all that a gateway holds of the files to be restored.
    with reserve_home(home.lock, PATIENCE), show_progress(f"checking {path}"):
        done = restore_archive(path, home, replace=args.replace)
    for note in list_notes(done.archive, home):
        print_note(note)
    kept = str(done.replaced) if done.replaced else None
    text = f"{home.root} is now what {path} holds: {', '.join(done.pieces)}"
    facts: dict[str, object] = {
        "home": str(home.root),
        "pieces": list(done.pieces),
        "replaced": kept,
        "secrets": list(done.archive.secrets),
    }
    return facts, text + (f"; what was there is in {kept}" if kept else ""), ()


def list_notes(archive: ReadArchive, home: Home) -> Iterator[str]:
    """Yield the steps that remain after a restore."""
    if archive.secrets:
        yield f"to be set again in {home.env}: {', '.join(archive.secrets)}"
    for name, why in archive.left_out.items():
        if name != ENV:
            yield f"it was left out when the copy was made: {name}: {why}"
    if JOURNAL in archive.digests:
        yield from describe_servers(home)
    if Path(archive.home) != home.root:
        yield f"conversations from before name their files as they lay in {archive.home}"


def describe_servers(home: Home) -> Iterator[str]:
    """Yield the step that remains if NATS servers keep the journal: no gateway reads the home's own."""
    if servers := read_servers(home):
        yield f"{servers.url} keeps the journal: what lies in {home.journal} now is taken there with: {MIGRATE}"


def describe(found: JournalContents) -> str:
    """Describe the state of the records by their checksums."""
    if found.damaged:
        return f"has {format_count(len(found.damaged), 'damaged record')}"
    unchecked = f" (of an older version, without a checksum: {format_count(found.unchecked, 'record')})"
    return f"is whole{unchecked if found.unchecked else ''}"


def list_facts(path: Path, found: JournalContents) -> dict[str, object]:
    counted = {"records": found.records, "size": found.size, "unchecked": found.unchecked}
    return {"file": str(path), **counted, "damaged": list(found.damaged)}


def remove_search_index(search: Path) -> None:
    """Remove the search index, which was made from another journal; the next gateway makes a new one."""
    for suffix in ("", "-wal", "-shm"):
        search.with_name(search.name + suffix).unlink(missing_ok=True)
