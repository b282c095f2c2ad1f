"""Move received files into the folder of their conversation, which earlier versions did not have.

Earlier versions kept all files in one folder that every agent could reach. A start moves each file to its conversation,
which the journal names, and leaves a link in its place, since hooks and commands may know the old path; an agent that
names the path finds the file in its own folder. If several conversations have a file, each gets a copy. A folder for
owners takes files without a conversation.

Each step can be repeated: a file gets its new name before the link takes the old name. If a start is killed, the next
start finishes its work.
"""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gateway.engine.interface import Engine
from gateway.files.folders import UNCLAIMED
from gateway.records import records, subjects
from gateway.threads import run_in_thread
from gateway.yaml_source.units import format_count

log = logging.getLogger(__name__)


async def move_received_files(engine: Engine, files: Path) -> None:
    """Move the files that are still in the old folder."""
    found = await run_in_thread(lambda: [*_list_in_old_place(files)])
    if not found:
        return
    folders: dict[tuple[str, ...], dict[Path, None]] = {}  # by network and name, since the home may have moved
    async for _, kept in records.read_all(engine, subjects.IN_SUBJECTS, records.InboundMessage):
        for one in kept.message.attachments:
            own = kept.message.address.find_folder(files, kept.message.user_id)
            folders.setdefault(Path(one.path).parts[-2:], {})[own] = None
    unclaimed = failed = 0
    for path in found:
        try:
            places = tuple(folders.get(path.parts[-2:], ())) or (files / UNCLAIMED / path.relative_to(files).parent,)
            await run_in_thread(_move, path, places)
            unclaimed += path.parts[-2:] not in folders
        except OSError as error:
            failed += 1
            log.warning("%s cannot be moved to its conversation, and no agent reaches it: %s", path, error)
    moved = len(found) - failed
    count = format_count(moved - unclaimed, "file")
    log.info("received files are with their conversations now, below %s: %s", files, count)
    if unclaimed:
        log.info(
            "without a known sender, and open to owners in %s: %s", files / UNCLAIMED, format_count(unclaimed, "file")
        )


def _list_in_old_place(files: Path) -> Iterator[Path]:
    """List the files directly in the common folder or a network's folder; conversations have folders below these."""
    for path in (*files.glob("*"), *files.glob("*/*")):
        with suppress(OSError):
            if path.is_file() and not path.is_symlink() and not path.parent.name.startswith("."):
                yield path


def _move(path: Path, folders: tuple[Path, ...]) -> None:
    first, *others = folders
    for folder in (first, *others):
        for parent in (folder.parent, folder):
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        try:
            os.link(path, first / path.name)  # both names are one file until the link takes the old name
        except (PermissionError, NotImplementedError):  # some disks have no hard links
            _copy(path, first / path.name)
    for folder in others:
        _copy(path, folder / path.name)
    link = path.with_name(f".{path.name}.new")
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(first / path.name, path.parent))
    link.replace(path)


def _copy(path: Path, to: Path) -> None:
    """Copy a file whole or not at all, with its age, which decides when the file is removed."""
    beside = to.with_name(f".{to.name}.new")
    shutil.copy2(path, beside)
    beside.replace(to)
