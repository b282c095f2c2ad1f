"""The home's own folder of copies: one is made at a time, and of those that the gateway makes itself the last stay.

When the last of them was made stands in their names, which a copy to another disk does not change.
"""

import calendar
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.backup.contents import WORK_PREFIX, BackupError
from gateway.files.folders import lock_path

STAMP = "%Y%m%d-%H%M%S"
SELF_MADE = re.compile(r"auto-(\d{8}-\d{6})\.tar\.gz")


@contextmanager
def open_backup_folder(folder: Path) -> Iterator[Path]:
    """The folder, for whoever makes a copy in it now; what those left that were killed is gone.

    Raises:
        BackupError: somebody else makes one at this moment.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with lock_path(folder):
            for left in folder.glob(f"{WORK_PREFIX}*"):
                shutil.rmtree(left, ignore_errors=True)
            yield folder
    except BlockingIOError:
        raise BackupError(f"another copy is being made in {folder} at this moment; try again") from None


def make_own_name(moment: float) -> str:
    """The name of a copy that the gateway makes itself."""
    return time.strftime(f"auto-{STAMP}.tar.gz", time.gmtime(moment))


def list_own(folder: Path) -> list[tuple[float, Path]]:
    """The copies that the gateway made itself, with the moment of each, the newest last."""
    found = ((SELF_MADE.fullmatch(path.name), path) for path in folder.glob("auto-*"))
    return sorted((_read_moment(match[1]), path) for match, path in found if match)


def expire_own(folder: Path, keep: int) -> None:
    """Remove all but so many of the newest."""
    for _, path in list_own(folder)[:-keep]:
        path.unlink(missing_ok=True)


def _read_moment(stamp: str) -> float:
    """Zero for what is no date: such a copy is older than all others."""
    try:
        return float(calendar.timegm(time.strptime(stamp, STAMP)))
    except ValueError:
        return 0.0
