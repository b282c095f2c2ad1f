"""The home's own folder of copies: one is made at a time, and of the gateway's own ones the last stay.

Their names have the time of their creation, which a copy to another disk does not change.
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
    """Open the folder for one new copy, and remove what killed processes left.

    Raises:
        BackupError: another process makes one at this moment.
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
    """Return the name for a copy that the gateway makes itself."""
    return time.strftime(f"auto-{STAMP}.tar.gz", time.gmtime(moment))


def list_own(folder: Path) -> list[tuple[float, Path]]:
    """List the gateway's own copies with their times, the newest last."""
    found = ((SELF_MADE.fullmatch(path.name), path) for path in folder.glob("auto-*"))
    return sorted((_read_moment(match[1]), path) for match, path in found if match)


def expire_own(folder: Path, keep: int) -> None:
    """Remove all but this many of the newest own copies."""
    for _, path in list_own(folder)[:-keep]:
        path.unlink(missing_ok=True)


def _read_moment(stamp: str) -> float:
    """Return a time; 0 for an invalid date, so that such a copy counts as the oldest."""
    try:
        return float(calendar.timegm(time.strptime(stamp, STAMP)))
    except ValueError:
        return 0.0
