"""The search for a full disk: a program that writes to an open file does not learn which one it is."""

import shutil
import tempfile
from pathlib import Path

from gateway.config.home import Home
from gateway.errors import FULL_DISK, DiskError

FULL = 1_000_000  # bytes; some file systems reserve a little space
REMEDY = "make room there, and try again; what was kept before is as it was"


def describe_disk_error(error: BaseException, home: Home) -> BaseException:
    """Return a full disk's error with its place and the remedy, and any other error unchanged."""
    if not isinstance(error, OSError) or error.errno not in FULL_DISK:
        return error
    place = error.filename or _find_full_place(home) or "where this program writes to"
    return DiskError(f"{error.strerror}: {place}\n{REMEDY}")


def _find_full_place(home: Home) -> str:
    """Return the place of ours whose disk is full; "": none is."""
    places = (home.root, Path(tempfile.gettempdir()))
    return next((str(place) for place in places if _measure_room(place) < FULL), "")


def _measure_room(place: Path) -> int:
    """Return the free bytes at a place, or where it would be made."""
    there = next(path for path in (place, *place.parents) if path.exists())
    return shutil.disk_usage(there).free
