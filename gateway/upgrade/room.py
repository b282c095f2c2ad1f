"""The check of disk space for an upgrade: made while the gateway still runs, so that it is not stopped in vain."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from gateway.backup.contents import JOURNAL, list_files
from gateway.config.home import Home
from gateway.engine.sqlite.journal_file import COMPANION_SUFFIXES
from gateway.upgrade.plan import UpgradeError

SPARE_ROOM = 256 << 20  # bytes that stay free beside a program
SPARE_IN_HOME = 64 << 20  # bytes that a restore leaves for others


def check_room(home: Home, prefix: Path, *, with_program: bool) -> None:
    """Check the space for the home's copy and its restore, and for the new program if it is still missing.

    Raises:
        UpgradeError: how much is missing, and where.
    """
    wanted = [("the copy of the home, and the way back", home.own_folder, estimate_home(home))]
    if with_program:
        files = (Path(at, name) for at, _, names in os.walk(prefix) for name in names)
        wanted.append(("the new program", prefix.parent, count_files(files) + SPARE_ROOM))
    disks: dict[int, list[tuple[str, Path, int]]] = {}
    for what, place, needed in wanted:
        disks.setdefault(place.stat().st_dev, []).append((what, place, needed))
    for pieces in disks.values():
        place, needed = pieces[0][1], sum(size for _, _, size in pieces)
        free = shutil.disk_usage(place).free
        if free < needed:
            shares = ", ".join(f"{size >> 20} MB for {what}" for what, _, size in pieces)
            raise UpgradeError(
                f"too little space on the disk of {place}: {needed >> 20} MB are needed ({shares}), "
                f"{free >> 20} MB are free\nfree some space; the gateway was not stopped, and nothing was changed"
            )


def estimate_home(home: Home) -> int:
    """Estimate the bytes for the copy and for a restore.

    The copy may be as large as its content, and a restore lays all of it out beside the present files.
    """
    files = [one.path for one in list_files(home, with_env=False) if not one.why_not]
    journal = [home.root / f"{JOURNAL}{suffix}" for suffix in ("", *COMPANION_SUFFIXES)]
    return 2 * count_files([*files, *journal]) + SPARE_IN_HOME


def count_files(paths: Iterable[Path]) -> int:
    """Return the size of the existing files."""
    total = 0
    for path in paths:
        with suppress(OSError):
            total += path.lstat().st_size
    return total
