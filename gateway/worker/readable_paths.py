"""What a command may reach where something must be out of its reach: all around that, piece by piece.

Landlock only grants. So a folder in which something is hidden is granted in pieces, each of them whole. They are
counted anew for each command, as they are then: what appears meanwhile in a folder of pieces cannot be reached, and the
folder itself cannot be listed, only what lies in it. No link is followed: what it leads to is granted where that lies,
or is not.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path


def find_withheld(paths: Iterable[str]) -> frozenset[str]:
    """Where these really are, as far as they are there now, whether or not this user can read them at this moment.

    A place that is a link is hidden where it leads to: the link itself is granted to nobody. One in a closed folder is
    hidden with that folder, which a command of the same user could open.
    """
    found = map(_find_reached, paths)
    return frozenset(os.path.realpath(one) for one in found if one)


def _find_reached(path: str) -> str:
    """The path, or the closed folder in front of it; empty if neither is there."""
    try:
        os.lstat(path)
    except PermissionError:
        return _find_reached(str(Path(path).parent))
    except OSError:
        return ""
    return path


def list_pieces(top: str, hidden: frozenset[str]) -> tuple[str, ...]:
    """The fewest paths that hold everything below `top` but what is hidden there, and hold none of that."""
    start = os.path.realpath(top)
    within = "/" if start == "/" else f"{start}/"
    below = {one for one in hidden if one.startswith(within)}
    above = {str(parent) for one in below for parent in Path(one).parents}
    return tuple(_list_below(start, below, above)) if below else (start,)


def find_inside(place: str, folders: Iterable[str]) -> Path | None:
    """The place that its name gives it in the first of these folders on its way; None: it is in none of them.

    The agent makes links in such a folder, so none below it is followed.
    """
    path, within = Path(os.path.normpath(place)), tuple(folders)
    for folder in reversed(path.parents):
        real = Path(os.path.realpath(folder))
        if any(real.is_relative_to(one) for one in within):
            return real / path.relative_to(folder)
    return None


def _list_below(folder: str, hidden: set[str], above: set[str]) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.path in hidden or entry.is_symlink():
                continue
            if entry.path in above:
                yield from _list_below(entry.path, hidden, above)
            else:
                yield entry.path
