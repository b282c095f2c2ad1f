"""The second half of a restore: the verified pieces are moved into place, one by one.

A plan beside them has the steps, and a crash may follow each one: a repetition has the same result. This module is
light on purpose: each start of the gateway checks if a restore is unfinished.
"""

import errno
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from gateway.backup.contents import JOURNAL, BackupError
from gateway.config.home import OWN_FOLDER, Home
from gateway.engine.sqlite.journal_file import COMPANION_SUFFIXES, FileLock, connect, sync
from gateway.files.folders import read_plain_file, write_file

NEW, PLAN = "new", "plan.json"


def write_plan(folder: Path, home: Home, pieces: Sequence[str], there: Sequence[str]) -> None:
    """Write the plan into the folder of the new pieces: these pieces, and those of the home that they replace."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    plan = {"pieces": pieces, "aside": there, "replaced": str(home.replaced / stamp)}
    write_file(folder / PLAN, json.dumps(plan).encode())
    sync(folder)


def resume_restore(home: Home) -> Path | None:
    """Finish an interrupted restore, if one exists; return the place of the replaced pieces.

    Raises:
        HomeBusy: another process is at it.
        BackupError: it cannot be finished. An earlier version began it without a check of mounts, or something has been
            mounted since.
    """
    if not home.restore.is_dir():
        return None
    with closing(FileLock(home.journal)):
        try:
            return apply_plan(home)
        except OSError as error:
            raise BackupError(_describe_halt(home, error)) from None


def _describe_halt(home: Home, error: OSError) -> str:
    what = f"{home.root}: a restore of a backup stands half-way, and cannot go on: {error.strerror}: {error.filename}"
    remedy = "mend that"
    if error.errno in (errno.EBUSY, errno.EXDEV):
        what += f", which is a mount point, or mounted apart from {home.restore}"
        remedy = "unmount it"
    return f"{what}\n{remedy}, and start the gateway or the restore again: it goes on where it stopped; nothing is lost"


def apply_plan(home: Home) -> Path | None:
    """Move the pieces, with the lock of the journal held; return the place of the replaced ones, or None."""
    try:
        plan = json.loads(read_plain_file(home.restore / PLAN))
    except FileNotFoundError:  # the last step was interrupted
        shutil.rmtree(home.restore)
        return None
    new, kept = home.restore / NEW, Path(plan["replaced"])
    for name in [*(one for one in plan["aside"] if one not in plan["pieces"]), *plan["pieces"]]:
        place = home.root / name
        if name in plan["pieces"] and not os.path.lexists(new / name):
            continue  # it is in place already
        if name == JOURNAL:
            _set_journal_aside(home.journal, kept)
        if os.path.lexists(place):
            _set_aside(place, kept / name)
        if name in plan["pieces"]:
            (new / name).rename(place)
    for suffix in ("", *COMPANION_SUFFIXES):
        Path(f"{home.search}{suffix}").unlink(missing_ok=True)  # a new one is made from the journal
    sync(home.own_folder)
    sync(home.root)
    (home.restore / PLAN).unlink()
    shutil.rmtree(home.restore)
    return kept if kept.exists() else None


def _set_journal_aside(journal: Path, kept: Path) -> None:
    """Move a replaced journal's companions aside, after its write-ahead log is merged into it, if that can be read."""
    if journal.exists():
        with suppress(sqlite3.Error), closing(connect(journal)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in COMPANION_SUFFIXES:
        beside = Path(f"{journal}{suffix}")
        if beside.exists():
            _set_aside(beside, kept / OWN_FOLDER / beside.name)


def _set_aside(place: Path, kept: Path) -> None:
    """Move a piece aside, unless it is empty; if a crash has left one of its name there, beside that one."""
    if not has_content(place):
        shutil.rmtree(place)
        return
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    while os.path.lexists(kept):
        kept = kept.with_name(f"{kept.name}.again")
    place.rename(kept)


def has_content(place: Path) -> bool:
    """Return True for anything but empty folders."""
    if place.is_symlink() or not place.is_dir():
        return os.path.lexists(place)
    return any(files or any(Path(at, name).is_symlink() for name in folders) for at, folders, files in os.walk(place))
