"""The check of mounts before a restore: nothing can be moved from one mount to another, and no mount point at all.

Two mounts may show the same disk (as `-v ./hooks:/data/hooks` does), so the number of the device is not enough.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from gateway.backup.contents import BackupError
from gateway.config.home import Home

MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def check_mounts(home: Home, names: Iterable[str]) -> None:
    """Check that the files at these paths below the home can be replaced.

    Raises:
        BackupError: one of them cannot.
    """
    mounts = _list_mounts()
    through = [home.own_folder, home.replaced]  # new files come from the first, old ones go to the second
    for name in names:
        place = home.root / name
        folder = place.parent.resolve()
        inside = folder / place.name
        if inside in mounts if mounts else inside.is_mount():
            raise BackupError(_describe(f"{place} is a mount point"))
        for other in through:
            if _find_mount(folder, mounts) != _find_mount(other.resolve(), mounts):
                raise BackupError(_describe(f"{other} is mounted apart from {place}"))


def _describe(what: str) -> str:
    return (
        f"{what}, so a copy cannot take its place in one step; nothing was put back\n"
        "unmount it and restore again, or restore into another home with --home DIR"
    )


def _list_mounts() -> frozenset[Path]:
    """List the mount points; empty if the system does not show them."""
    with suppress(OSError):
        fields = (line.split(b" ")[4] for line in MOUNTS.read_bytes().splitlines())
        return frozenset(
            Path(os.fsdecode(_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), field))) for field in fields
        )
    return frozenset()


def _find_mount(path: Path, mounts: frozenset[Path]) -> Path:
    """Return the mount of a path; a part of a disk with its own device number, as of btrfs, counts as one."""
    return next(one for one in (path, *path.parents) if one in mounts or one.is_mount())
