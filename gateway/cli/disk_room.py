"""A disk on which nothing more can be written: which one it is. Whoever writes into an open file is not told."""

import errno
import shutil
import tempfile
from pathlib import Path

from gateway.config.home import Home
from gateway.errors import DiskError

FULL = 1_000_000  # bytes; some file systems keep a little that nobody gets
REMEDY = "make room there, and try again; what was kept before is as it was"


def describe_disk_error(error: BaseException, home: Home) -> BaseException:
    """The error with its place and what helps, where it is one of a full disk; any other as it is."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return error
    place = error.filename or _find_full_place(home) or "where this program writes to"
    return DiskError(f"{error.strerror}: {place}\n{REMEDY}")


def _find_full_place(home: Home) -> str:
    """Of those in which we write the one that has no room; empty: all have some."""
    places = (home.root, Path(tempfile.gettempdir()))
    return next((str(place) for place in places if _measure_room(place) < FULL), "")


def _measure_room(place: Path) -> int:
    """The bytes that are free there, or where it would be made."""
    there = next(path for path in (place, *place.parents) if path.exists())
    return shutil.disk_usage(there).free
