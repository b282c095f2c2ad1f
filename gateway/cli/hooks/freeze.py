"""`hooks freeze` and `hooks sync`: what is installed as one text, and another home made the same by it."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from gateway.cli.hooks.install import NOBODY_ASKED, ask_person, notify_gateway, show_request
from gateway.cli.output import print_lines, print_note, show_json
from gateway.config.home import Home, get_process_environment
from gateway.config.permissions import prepare_home
from gateway.errors import ExitCode, HookError
from gateway.hooks.folders.installed import HooksLock, InstalledHook, list_missing_grants
from gateway.installer.fetched_hook import FetchedHook, fetch_hook
from gateway.installer.lock_file import add_installed, open_workspace, read_installed, remove_installed, remove_unused
from gateway.installer.source import limit_to_commit, parse_source
from gateway.logs.text import to_one_line


def run(args: argparse.Namespace, home: Home) -> int | None:
    if args.verb == "freeze":
        show_json({"version": 1, "hooks": msgspec.to_builtins(read_installed(home))})
        return None
    prepare_home(home)
    if args.json and not args.yes:
        raise HookError(NOBODY_ASKED)
    return sync(args, home)


def sync(args: argparse.Namespace, home: Home) -> int:
    """Nothing changes before all of it is there, is what was frozen, and somebody has said yes."""
    wanted, there = read_frozen(Path(args.file)), read_installed(home)
    gone = sorted(there.keys() - wanted.keys())
    new = {name: one for name, one in wanted.items() if name not in there or not is_same(one, there[name])}
    with open_workspace(home) as work:
        fetched = [fetch_frozen(name, one, work) for name, one in new.items()]
        for hook in fetched if not args.json else ():
            show_request(hook)
        if gone and not args.json:
            print_lines(to_one_line(f"to be removed: {', '.join(gone)}"), "")
        if not (fetched or gone):
            print_note("all is as it was frozen")
        elif not ask_person(f"Install {len(fetched)} and remove {len(gone)}?", args.yes):
            return int(ExitCode.FAILED)
        for hook in fetched:
            add_installed(home, hook)
        for name in gone:
            remove_installed(home, name)
        for name in [hook.name for hook in fetched] or [""]:
            notify_gateway(home, name)
        remove_unused(home)
    names = [hook.name for hook in fetched]
    if args.json:
        show_json({"installed": names, "removed": gone})
    elif names or gone:
        print_note(f"installed: {', '.join(names) or 'none'}; removed: {', '.join(gone) or 'none'}")
    return int(ExitCode.OK)


def read_frozen(file: Path) -> Mapping[str, InstalledHook]:
    """HookError: it is not what `hooks freeze` prints."""
    lock = HooksLock(file)
    if not file.is_file():
        raise HookError(f"{file} is not there")
    if lock.trouble:
        raise HookError(lock.trouble.partition(";")[0])
    return dict(lock.list())


def is_same(one: InstalledHook, other: InstalledHook) -> bool:
    return (one.digest, one.packages, one.source) == (other.digest, other.packages, other.source)


def fetch_frozen(name: str, frozen: InstalledHook, work: Path) -> FetchedHook:
    """HookError: what lies there now is not what was frozen, or asks for more than was agreed to."""
    source = parse_source(frozen.source)
    own = work / name
    own.mkdir(mode=0o700)
    environ = get_process_environment()
    hook = fetch_hook(limit_to_commit(source, frozen.commit), own, environ, frozen.source, frozen.packages)
    if (hook.name, hook.digest) != (name, frozen.digest):
        raise HookError(f"{name}: what lies at {frozen.source} is not what was frozen; nothing was changed")
    if more := "; ".join(list_missing_grants(hook.manifest, frozen.grants)):
        raise HookError(f"{name} asks for more than was agreed to when it was frozen: {more}; nothing was changed")
    return replace(hook, index=frozen.index)
