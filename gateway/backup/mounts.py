"""Whether what a restore moves can be moved: nothing is, out of one mount into another, and no mount point ever.

Two mounts may show the same disk (as `-v ./hooks:/data/hooks` does), so the number of the device tells too little.
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
    """What goes by these paths below the home is replaced.

    Raises:
        BackupError: something of it cannot be.
    """
    mounts = _list_mounts()
    through = [home.own_folder, home.replaced]  # what is new comes from there, what is old goes there
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
    """None where the system does not show them."""
    with suppress(OSError):
        fields = (line.split(b" ")[4] for line in MOUNTS.read_bytes().splitlines())
        return frozenset(
            Path(os.fsdecode(_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), field))) for field in fields
        )
    return frozenset()


def _find_mount(path: Path, mounts: frozenset[Path]) -> Path:
    """The mount that it lies in; a part of a disk that has a number of its own, as of btrfs, is as one."""
    return next(one for one in (path, *path.parents) if one in mounts or one.is_mount())
