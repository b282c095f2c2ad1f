"""What came in before there was a place for it: a folder of each conversation's own, and one for all gateways.

It lay in one folder, open to everybody's agent. At a start whatever still lies there is moved to the conversation that
it came in by, which the journal knows; what is nobody's any more goes to a folder that is open to owners alone. In its
old place a link stays, for hooks and commands that were told that path; an agent that names the path finds the file in
its own folder. A file that came into several conversations is copied into each.

A file is moved in steps that can be done again: it gets its new name, then the link takes its old one. So a start that
was killed in the midst of it is gone on with by the next.
"""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gateway import record_subjects, records
from gateway.config.home import Home
from gateway.engine import Engine
from gateway.file_folders import UNCLAIMED
from gateway.shared_files import SharedFiles
from gateway.threads import run_in_thread
from gateway.yaml_source.units import format_count

log = logging.getLogger(__name__)


async def move_received_files(engine: Engine, files: Path) -> None:
    """Move what lies in the old place, if anything does."""
    found = await run_in_thread(lambda: [*_list_in_old_place(files)])
    if not found:
        return
    folders: dict[tuple[str, ...], dict[Path, None]] = {}  # by network and name: the home may have lain elsewhere
    async for _, kept in records.read_all(engine, record_subjects.IN_SUBJECTS, records.InboundMessage):
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
            log.warning("%s cannot be moved to whoever sent it, and is out of reach of agents: %s", path, error)
    moved = len(found) - failed
    count = format_count(moved - unclaimed, "file")
    log.info("what people had sent lies with their conversations now, below %s: %s", files, count)
    if unclaimed:
        log.info(
            "open to owners in %s, since nobody knows who sent it: %s",
            files / UNCLAIMED,
            format_count(unclaimed, "file"),
        )


async def put_received_files(files: SharedFiles, home: Home) -> None:
    """Let other gateways have what lies here from before they could, once; where nobody shares files nothing is done.

    What others have already is passed over, so the next start goes on with one that was cut off. A home whose own
    journal was not taken along keeps what came in under that.

    Raises:
        EngineError: they are not all stored.
    """
    if not files.is_shared or await run_in_thread(home.shared_files.exists):
        return
    since = 0.0
    with suppress(OSError):
        since = home.journal.stat().st_mtime
    if count := await files.put_all(since):
        log.info("other gateways can have what people had sent here before: %s", format_count(count, "file"))
    await run_in_thread(home.shared_files.touch)


def _list_in_old_place(files: Path) -> Iterator[Path]:
    """Files right in the folder of a network, or in that of all; a folder of a conversation lies a step below. What
    begins with a dot is no network's."""
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
            os.link(path, first / path.name)  # both are one file, until the link takes the old name
        except (PermissionError, NotImplementedError):  # there are disks without such links
            _copy(path, first / path.name)
    for folder in others:
        _copy(path, folder / path.name)
    link = path.with_name(f".{path.name}.new")
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(first / path.name, path.parent))
    link.replace(path)


def _copy(path: Path, to: Path) -> None:
    """Whole or not at all, and as old as it is: by its age it goes, one day."""
    beside = to.with_name(f".{to.name}.new")
    shutil.copy2(path, beside)
    beside.replace(to)
