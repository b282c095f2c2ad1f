"""`hooks index`, `search` and `publish`: the places to look for hooks and skills, and how to offer your own there."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gateway.cli.output import format_ago, print_data, print_note, show_json, show_progress, show_table
from gateway.config.home import Home, get_process_environment
from gateway.config.permissions import prepare_home
from gateway.daemon.dialects import DIALECTS
from gateway.errors import HookError
from gateway.hooks.manifests.installed import Kind
from gateway.hooks.places.trusted_copy import read_whole_folder
from gateway.installer.archive import make_archive
from gateway.installer.fetched_hook import FetchedHook, fetch_hook
from gateway.installer.fetched_skill import FetchedSkill, fetch_skill
from gateway.installer.index_file import ListedHook, ListedSkill, add_listed
from gateway.installer.indexes import (
    OWN_INDEX,
    IndexReader,
    IndexRecord,
    list_indexes,
    load_index,
    set_indexes,
)
from gateway.installer.lock_file import open_workspace
from gateway.installer.repository import list_ignored_files
from gateway.installer.signature import NAMESPACE, read_key
from gateway.installer.source import GIT_PREFIX, check_login, parse_source
from gateway.logs.text import to_one_line
from gateway.yaml_source.units import format_count

# What `hooks new` writes, and the author has not replaced.
PLACEHOLDERS = ("this hook does, in one sentence", "HOST/REPOSITORY@TAG", "put the text of one into a file LICENSE")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,40}")  # that can be a part of a file name


def run(args: argparse.Namespace, home: Home) -> None:
    prepare_home(home)
    match args.verb:
        case "search":
            run_search(args, home)
        case "publish":
            run_publish(args, home)
        case _:
            {"add": run_add, "list": show_indexes, "remove": run_remove}[args.index](args, home)


def run_add(args: argparse.Namespace, home: Home) -> None:
    """Add an index, if it is valid now."""
    address = args.address
    check_login(address)
    if not address.startswith((GIT_PREFIX, "https://", "http://")):
        address = str(Path(address).expanduser().resolve())
    file = Path(args.key).expanduser()
    key = read_key(file.read_text("utf-8") if file.is_file() else args.key)
    if any(one.address == address for one in list_indexes(home)):
        raise HookError(f"{address} is known\nfor another key: hermes-gateway hooks index remove {address}")
    with open_workspace(home) as work, show_progress(f"reading {address}"):
        _, index = load_index(home, IndexRecord(address=address, key=key), work, get_process_environment())
    if args.json:
        has = {"hooks": sorted(index.hooks), "skills": sorted(index.skills)}
        show_json({"address": address, "key": key, "number": index.number, **has})
    else:
        offered = f"{format_count(len(index.hooks), 'hook')} and {format_count(len(index.skills), 'skill')}"
        print_note(f"{address} has {offered}, until {index.expires}")


def show_indexes(args: argparse.Namespace, home: Home) -> None:
    known = list_indexes(home)
    if args.json:
        show_json({"indexes": [msgspec.to_builtins(one) for one in known]})
        return
    rows = ((one.address, one.number if one.key else "", format_ago(one.at) if one.key else "ours") for one in known)
    show_table(("index", "number", "seen"), rows, "no indexes; add one: hermes-gateway hooks index add ADDRESS")


def run_remove(args: argparse.Namespace, home: Home) -> None:
    with open_workspace(home):
        known = list_indexes(home)
        left = [one for one in known if one.address != args.address]
        if len(left) == len(known) or args.address == str(OWN_INDEX):
            raise HookError(f"no index {to_one_line(args.address)} was added\nhermes-gateway hooks index list")
        set_indexes(home, left)
    print_note(f"{args.address} is removed; hooks that were installed from it stay")
    if args.json:
        show_json({"removed": args.address})


def run_search(args: argparse.Namespace, home: Home, kind: Kind = "hook") -> None:
    """Search the names and descriptions for a word; an invalid index is reported, and the others are searched."""
    found: list[tuple[str, IndexRecord, ListedHook | ListedSkill]] = []
    with open_workspace(home) as work, show_progress("reading the indexes"):
        indexes = [*IndexReader(home, get_process_environment()).list(work)]
    for known, index in indexes:
        if isinstance(index, HookError):
            print_note(f"! {index}")
            continue
        word, listed = args.word.casefold(), sorted(index.of(kind).items())
        found += [(name, known, one) for name, one in listed if word in f"{name} {one.description}".casefold()]
    if args.json:
        said = [{"name": name, "index": known.address, **msgspec.to_builtins(one)} for name, known, one in found]
        show_json({f"{kind}s": said})
        return
    for name, known, one in found:
        print_data(to_one_line(f"{name} {one.version}".strip()), "", "bold")
        for text in (one.description, f"from {known.address}"):
            print_data(to_one_line(text, 500), "  ", *(() if text == one.description else ("dim",)))
    if not found:
        what = f"a {kind} with that in its name or description" if args.word else f"any {kind}"
        print_note(f"no index has {what}; to add one: hermes-gateway hooks index add ADDRESS --key KEY")


def run_publish(args: argparse.Namespace, home: Home, kind: Kind = "hook") -> None:
    """Write a hook or skill into an index, which then has to be signed.

    Raises HookError if it is not fit for others.
    """
    folder, file = Path(args.folder).resolve(), Path(args.file).resolve()
    check_login(args.source or "")
    is_by_git = args.source.startswith(GIT_PREFIX) if args.source else not args.archive
    mode = 0o666 & ~args.umask  # it is for others; our other files are not
    fetch_one = fetch_skill if kind == "skill" else fetch_hook
    with open_workspace(home) as work:
        found = fetch_one(parse_source(str(folder)), work, get_process_environment(), DIALECTS)
        if wrong := [*list_needs(found), *(list_missing_files(found, folder) if is_by_git else ())]:
            raise HookError("\n".join((f"{folder} is not fit for an index:", *wrong)))
        place = args.source or (write_archive(found, file, mode) if args.archive else make_place(folder, file))
        index = add_listed(file, found, place, mode)
    sign = f"ssh-keygen -Y sign -n {NAMESPACE} -f KEY {file}"
    if args.json:
        said = {"name": found.name, "source": place, "number": index.number, "expires": index.expires, "sign": sign}
        show_json(said)
        return
    what = f"{found.name} is in {file}, which is number {index.number} and ends {index.expires}"
    print_note(f"{what}; sign it:\n{sign}")
    if place.startswith("./") and not args.archive:
        print_note(f"in a git repository others find {place} beside it; for a web host publish it with --archive")


def list_needs(found: FetchedHook | FetchedSkill) -> Iterator[str]:
    """Yield what a hook or skill lacks for other people to use it. A skill is its own README."""
    names = {path.name.upper() for path in found.folder.iterdir()}
    if not any(name.startswith(("LICENSE", "LICENCE", "COPYING")) for name in names):
        yield "it has no LICENSE"
    if isinstance(found, FetchedSkill):
        return
    readmes = [path for path in found.folder.iterdir() if path.is_file() and path.name.upper().startswith("README")]
    if not readmes:
        yield "it has no README: what it does, what it needs, an example"
    for path in [found.folder / "HOOK.yaml", *readmes]:
        text = path.read_text("utf-8", "replace")
        yield from (
            f"its {path.name} still says {one!r}, as `hooks new` wrote it" for one in PLACEHOLDERS if one in text
        )
    if not any(name.startswith("TEST") for name in names):
        yield "it has no test: a file test_*.py, or a folder tests"
    if not (found.manifest.description and found.manifest.version):
        yield "its HOOK.yaml says no description or no version"
    yield from (str(finding) for finding in found.version.findings)


def list_missing_files(found: FetchedHook | FetchedSkill, folder: Path) -> Iterator[str]:
    """Yield files that are part of the digest, and that git would leave out."""
    left_out = list_ignored_files(folder, get_process_environment())
    for name in sorted(left_out & read_whole_folder(found.folder).files.keys()):
        yield f"git leaves out {to_one_line(name)}, which is a part of it here: remove it, or have git keep it"


def write_archive(found: FetchedHook | FetchedSkill, file: Path, mode: int) -> str:
    """Write an archive beside the index, for a web host; return its path from there.

    Raises HookError if it has links.
    """
    whole = read_whole_folder(found.folder)
    if whole.links:
        raise HookError(f"{next(iter(whole.links))} is a link, and an archive for others has plain files alone")
    version = found.own_version if VERSION.fullmatch(found.own_version) else ""
    name = "-".join(filter(None, (found.name, version)))
    archive = file.with_name(f"{name}.tar.gz")
    archive.write_bytes(make_archive(whole.files, name))
    archive.chmod(mode)
    return f"./{archive.name}"


def make_place(folder: Path, file: Path) -> str:
    """Return the path from the index. Raises HookError if the folder is not beside it."""
    if folder.is_relative_to(file.parent):
        return f"./{folder.relative_to(file.parent)}"
    raise HookError(f"{folder} does not lie beside {file}\nsay where others find it: --source git+https://HOST/...@REF")
