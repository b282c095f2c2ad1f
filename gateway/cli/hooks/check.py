"""`hooks check`: what is wrong with hook folders, without the gateway and without running anything of them."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from gateway.cli.output import show_json
from gateway.config.home import Home
from gateway.errors import Exit, HookError
from gateway.hooks.folders.discovery import Folder, Source, hooks_in, look
from gateway.hooks.folders.study import study


def run(args: argparse.Namespace, home: Home) -> int:
    folders = list(chosen(args.names, home))
    found = {
        folder.path.name: (*folder.findings, *study(folder).findings) for folder in folders if not folder.is_refused
    }
    found |= {folder.path.name: folder.findings for folder in folders if folder.is_refused}
    wrong = any(finding.severity == "error" for findings in found.values() for finding in findings)
    if args.json:
        show_json({"ok": not wrong, "hooks": {name: [*map(str, findings)] for name, findings in found.items()}})
    else:
        for name, findings in found.items():
            print(f"{name}: {'fine' if not findings else ''}".rstrip())
            for finding in findings:
                print(f"  {finding}")
        if not folders:
            print(f"there are no hooks in {home.hooks}")
    return int(Exit.FAILED if wrong else Exit.OK)


def chosen(names: list[str], home: Home) -> Iterator[Folder]:
    if not names:
        yield from hooks_in(Source(home.hooks, "home"))
    for name in names:
        path = Path(name).absolute() if "/" in name or name.startswith(".") else home.hooks / name
        folder = look(Source(path.parent, "home"), path.name) if path.is_dir() else None
        if folder is None:
            raise HookError(f"{path} is no hook: it needs HOOK.yaml, and handler.py, a command or a URL")
        yield folder
