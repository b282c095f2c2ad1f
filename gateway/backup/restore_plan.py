"""The second half of putting a copy back: what is laid out and verified takes its place, piece by piece.

What is to be done stands in a plan beside it, and each step may be the last one before a crash: done again, all of it
comes to the same. Light on purpose: each start of the gateway looks whether anything is left to be done.
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
    """In the folder that holds the new pieces: which these are, and what of the home goes aside for them."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    plan = {"pieces": pieces, "aside": there, "replaced": str(home.replaced / stamp)}
    write_file(folder / PLAN, json.dumps(plan).encode())
    sync(folder)


def resume_restore(home: Home) -> Path | None:
    """Finish what was cut off, if anything was; where that is now which it replaced.

    Raises:
        HomeBusy: somebody is at it.
        BackupError: it cannot be finished. An earlier version began it without looking at mounts, or something has been
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
    return f"{what}\n{remedy}, and start the gateway or the restore again: it goes on where it stands; nothing is lost"


def apply_plan(home: Home) -> Path | None:
    """The lock of the journal is held. Where that is now which was replaced; None: nothing was."""
    try:
        plan = json.loads(read_plain_file(home.restore / PLAN))
    except FileNotFoundError:  # the last step was cut off
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
        Path(f"{home.search}{suffix}").unlink(missing_ok=True)  # it is made from the journal, anew
    sync(home.own_folder)
    sync(home.root)
    (home.restore / PLAN).unlink()
    shutil.rmtree(home.restore)
    return kept if kept.exists() else None


def _set_journal_aside(journal: Path, kept: Path) -> None:
    """What stands in its write-ahead log goes into it, where it can be read, and else with it."""
    if journal.exists():
        with suppress(sqlite3.Error), closing(connect(journal)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in COMPANION_SUFFIXES:
        beside = Path(f"{journal}{suffix}")
        if beside.exists():
            _set_aside(beside, kept / OWN_FOLDER / beside.name)


def _set_aside(place: Path, kept: Path) -> None:
    """It is kept if it holds anything, and if a crash has kept another of that name, beside that."""
    if not has_content(place):
        shutil.rmtree(place)
        return
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    while os.path.lexists(kept):
        kept = kept.with_name(f"{kept.name}.again")
    place.rename(kept)


def has_content(place: Path) -> bool:
    """Whether it is more than empty folders."""
    if place.is_symlink() or not place.is_dir():
        return os.path.lexists(place)
    return any(files or any(Path(at, name).is_symlink() for name in folders) for at, folders, files in os.walk(place))
