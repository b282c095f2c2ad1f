"""`hooks install`, `update`, `outdated` and `remove`: hooks of others, agreed to before anything of them runs.

All of it works without the gateway; one that runs is told, and has the hook live at once.
"""

import argparse
import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.cli.layout import get_columns
from gateway.cli.output import (
    ask_person,
    escape_text,
    print_data,
    print_lines,
    print_note,
    show_fields,
    show_json,
    show_progress,
    show_table,
)
from gateway.cli.program import apply_program_name
from gateway.config.home import Home, get_process_environment
from gateway.config.permissions import prepare_home
from gateway.control_socket.client import call_gateway
from gateway.errors import ExitCode, GatewayError, HookError, NotRunning
from gateway.hermes.installed_hooks import make_installed_source
from gateway.hooks.folders.installed import InstalledHook, list_missing_grants
from gateway.hooks.folders.trusted_copy import read_whole_folder
from gateway.installer.fetched_hook import (
    FetchedHook,
    describe_changes,
    describe_request,
    fetch_hook,
    list_text_files,
)
from gateway.installer.indexes import find_listed, is_listed_name, make_listed_source
from gateway.installer.lock_file import add_installed, open_workspace, read_installed, remove_installed, remove_unused
from gateway.installer.source import parse_source
from gateway.logs.text import to_one_line

NOBODY_ASKED = "with --json nobody is asked\nwhoever has read what it asks for says --yes"
MAX_DIFF = 400  # lines of a difference that are shown on a terminal
MAX_LINE = 2000  # characters of such a line
SHORT_COMMIT = 12


@dataclass(frozen=True, slots=True)
class HookUpdate:
    """What there is of an installed hook now, beside what is installed. `more`: what it asks for besides."""

    before: InstalledHook
    now: FetchedHook
    folder: Path  # of what is installed

    @property
    def is_new(self) -> bool:
        return (self.before.digest, self.before.packages) != (self.now.digest, self.now.packages)

    @property
    def is_intact(self) -> bool:
        """Whether what is installed lies there as it was installed."""
        try:
            return read_whole_folder(self.folder, known=self.before.digest).digest == self.before.digest
        except HookError:
            return False

    @property
    def more(self) -> list[str]:
        known = {name_of(line) for line in self.before.packages}
        added = [line.partition(" ")[0] for line in self.now.packages if name_of(line) not in known]
        packages = [f"packages: {', '.join(added)}"] if added else []
        return [*list_missing_grants(self.now.manifest, self.before.grants), *packages]

    @property
    def moved(self) -> str:
        """That the tag or commit by which it was named means something else now."""
        then, now = self.before.commit or "", self.now.commit or ""
        return f"{then[:SHORT_COMMIT]} -> {now[:SHORT_COMMIT]}" if then != now else ""


def run(args: argparse.Namespace, home: Home) -> int | None:
    prepare_home(home)
    if args.json and not (getattr(args, "yes", True) or getattr(args, "check", False)):
        raise HookError(NOBODY_ASKED)
    match args.verb:
        case "install":
            return run_install(args, home)
        case "update":
            return run_update(args, home)
        case "outdated":
            show_updates(args, home)
        case _:
            run_remove(args, home)
    return None


def run_install(args: argparse.Namespace, home: Home) -> int | None:
    with open_workspace(home) as work:
        with show_progress(f"fetching {args.source}, with what it needs"):
            if is_listed_name(args.source):
                hook = fetch_listed(args.source, home, work)
            else:
                hook = fetch_hook(parse_source(args.source), work, get_process_environment())
        before = read_installed(home).get(hook.name)
        if before and (before.index or before.source) != (hook.index or hook.source):
            what = f"{hook.name} is installed, from {before.index or before.source}"
            raise HookError(f"{what}\nremove that one first: hermes-gateway hooks remove {hook.name}")
        update = HookUpdate(before, hook, home.own_folder / before.path) if before else None
        if not (take_update(update, args, home) if update else take_new(hook, args, home)):
            return int(ExitCode.FAILED)
    is_running = notify_gateway(home, hook.name)
    if args.json:
        said = {"installed": hook.name, "source": hook.source, "commit": hook.commit, "digest": hook.digest}
        show_json({**said, "running": is_running})
    elif make_installed_source(home).find(hook.name) is None:
        print_note(f"{hook.name} is installed; {home.hooks / hook.name} stands in for it")
    elif not is_running:
        print_note(f"{hook.name} is installed, and runs when the gateway does")
    return None


def take_new(hook: FetchedHook, args: argparse.Namespace, home: Home) -> bool:
    """Show it, ask, and install it; whether it was."""
    if not args.json:
        show_request(hook)
    if is_taken := ask_person(f"Install {hook.name}?", args.yes):
        add_installed(home, hook)
    return is_taken


def fetch_listed(name: str, home: Home, work: Path, address: str = "") -> FetchedHook:
    """The hook that an index, or this one, has under this name.

    Raises:
        HookError: none has, or what lies there is not what it says.
    """
    environ = get_process_environment()
    known, entry = find_listed("hook", name, home, work, environ, address)
    hook = fetch_hook(make_listed_source(known, entry), work, environ)
    if (hook.name, hook.digest) != (name, entry.digest):
        raise HookError(f"{name}: what lies at {hook.source} is not what {known.address} names; nothing was changed")
    return replace(hook, index=known.address)


def run_update(args: argparse.Namespace, home: Home) -> int:
    """Each that is named, or all. The exit code says whether something is left to do."""
    taken, left = list[str](), list[str]()
    for name in list_installed(home, args.names):
        with open_workspace(home) as work:
            update = fetch_update(home, name, work)
            if args.check and update.is_new and not args.json:
                show_update(update, home)
            if args.check:
                left += [name] if update.is_new else []
                continue
            (taken if take_update(update, args, home) else left).append(name)
        notify_gateway(home, name)
    if args.json:
        show_json({"updated": taken, "left": left})
    return int(ExitCode.FAILED if left else ExitCode.OK)


def list_installed(home: Home, names: Sequence[str]) -> list[str]:
    """HookError: one of them is not installed."""
    installed = read_installed(home)
    for name in names:
        if name not in installed:
            refuse_missing(home, name)
    return list(names or installed)


def refuse_missing(home: Home, name: str) -> None:
    placed = home.hooks / name
    if name and "/" not in name and placed.is_dir():
        raise HookError(f"{name} was not installed, but placed by hand: {placed}")
    raise HookError(f"no hook {to_one_line(name)} is installed\nwhat is, prints: hermes-gateway hooks freeze")


def fetch_update(home: Home, name: str, work: Path) -> HookUpdate:
    """What there is of it now. HookError: it is not there any more, or is another hook."""
    before = read_installed(home)[name]
    environ = get_process_environment()
    if before.index:
        now = fetch_listed(name, home, work, before.index)
    else:
        now = fetch_hook(parse_source(before.source), work, environ)
    if now.name != name:
        raise HookError(f"what lies at {before.source} now is the hook {now.name}, and not {name}")
    return HookUpdate(before, now, home.own_folder / before.path)


def take_update(update: HookUpdate, args: argparse.Namespace, home: Home) -> bool:
    """Show it, ask, and have it installed. What asks for more is never taken without somebody who sees that.

    Whether what is installed is now what there is.
    """
    name = update.now.name
    if not update.is_new:
        if not update.is_intact:
            add_installed(home, update.now)
        print_note(f"{name} is installed as it is there")
        return True
    if not args.json:
        show_update(update, home)
    if update.more and args.yes:
        print_note(f"{name} asks for more, and nobody is asked: it stays as it is\nhermes-gateway hooks update {name}")
        return False
    if is_taken := ask_person(f"Update {name}?", args.yes):
        add_installed(home, update.now)
    return is_taken


def run_remove(args: argparse.Namespace, home: Home) -> None:
    if args.name not in read_installed(home):
        refuse_missing(home, args.name)
    with open_workspace(home):
        remove_installed(home, args.name)
        with_gateway = notify_gateway(home, "")
        remove_unused(home)
    data = home.hook_data / args.name
    print_note(f"{args.name} is removed" + (f"; its data stays in {data}" if data.exists() else ""))
    if args.json:
        show_json({"removed": args.name, "running": with_gateway})


def show_updates(args: argparse.Namespace, home: Home) -> None:
    rows: list[tuple[str, ...]] = []
    found: list[dict[str, str | None]] = []
    for name in list_installed(home, ()):
        with open_workspace(home) as work:
            try:
                update = fetch_update(home, name, work)
            except HookError as error:
                found.append({"name": name, "error": str(error)})
                rows.append((name, "", "", apply_program_name(to_one_line(str(error)))))
                continue
            if update.is_new:
                said = "; ".join(update.more)
                found.append({"name": name, "commit": update.now.commit, "digest": update.now.digest, "more": said})
                version = update.now.manifest.version or update.now.digest.partition(":")[2][:SHORT_COMMIT]
                rows.append((name, version, update.moved, said and f"asks for more: {said}"))
    if args.json:
        show_json({"outdated": found})
    else:
        show_table(("hook", "there is", "commit", ""), rows, "all that is installed is as it is there")


def show_request(hook: FetchedHook) -> None:
    """What it is, and what it asks for, before anything of it runs."""
    manifest = hook.manifest
    print_data(to_one_line(f"{hook.name} {manifest.version}".strip()), "", "bold")
    if manifest.description:
        print_data(to_one_line(manifest.description, 500), "  ")
    what = f"{hook.files} files, {hook.size:,} bytes, {hook.digest.partition(':')[2][:SHORT_COMMIT]}"
    commit = (("commit", hook.commit),) if hook.commit else ()
    told = describe_request(hook.name, manifest, hook.packages)
    source = (("from", hook.source),) if hook.source else ()  # one that a skill brings comes with it
    asked = ((label, text) for label, text in told if text)
    show_fields((*source, *commit, ("what", what), *asked), is_whole=True)
    for finding in hook.version.findings:
        print_lines(to_one_line(f"! {finding}"), "", "yellow")


def show_update(update: HookUpdate, home: Home) -> None:
    """What it asks for that it did not, and how its code differs."""
    now = update.now
    print_data(to_one_line(f"{now.name} {now.manifest.version} {update.moved}".strip()), "", "bold")
    asked = [*describe_request(now.name, now.manifest, now.packages)]
    for line in describe_changes(describe_installed(update, home), asked):
        print_data(to_one_line(line, len(line)), "  ", "yellow" if line.startswith("+") else "dim")
    for more in update.more:
        print_data(f"asks for more: {to_one_line(more, len(more))}", "  ", "yellow")
    show_differences(update.folder, now.folder, f"hermes-gateway hooks update {now.name}")


def show_differences(before: Path, now: Path, command: str) -> None:
    """How the files of two folders differ: on a terminal as far as a person reads that; `command` shows all of it."""
    lines = [*describe_differences(list_text_files(before), list_text_files(now))]
    shown = lines if get_columns(sys.stdout) is None else [to_one_line(line, MAX_LINE) for line in lines[:MAX_DIFF]]
    for line in shown:
        print(escape_text(line))
    if shown != lines:
        left = len(lines) - len(shown)
        what = f"{left} lines of the difference are" if left else "the end of long lines is"
        print_note(f"{what} not shown; to read all of it: {command} --check | less")


def describe_installed(update: HookUpdate, home: Home) -> list[tuple[str, str]]:
    """What the installed version says; nothing where its folder is gone."""
    name, source = update.now.name, make_installed_source(home)
    version = source.find(name) or source.find(update.folder.name)
    manifest = source.inspect(version).manifest if version else None
    return [*describe_request(name, manifest, update.before.packages)] if manifest else []


def describe_differences(before: Mapping[str, str | None], now: Mapping[str, str | None]) -> Iterator[str]:
    """The difference, file by file, as programmers read it."""
    for name in sorted({*before, *now}):
        then, there = before.get(name, ""), now.get(name, "")
        if then is None or there is None:
            what = "differs" if name in before and name in now else "is new or gone"
            yield to_one_line(f"{name} is no text, and {what}")
        elif then != there:
            lines = difflib.unified_diff(then.splitlines(), there.splitlines(), f"a/{name}", f"b/{name}", lineterm="")
            yield from (to_one_line(line, len(line)) for line in lines)


def notify_gateway(home: Home, name: str) -> bool:
    """Have it looked at again; whether a gateway runs."""
    try:
        found = call_gateway(home.socket, "hooks.reload", name=name)
    except NotRunning:
        return False
    except GatewayError as error:
        print_note(f"{name}: {error}")
        return True
    if name:
        reason = f": {found['reason']}" if found["reason"] else ""
        print_note(f"{found['name']} is {found['state']}{reason}")
    return True


def name_of(line: str) -> str:
    """Of which package a line of the lock is."""
    return line.partition("==")[0]
