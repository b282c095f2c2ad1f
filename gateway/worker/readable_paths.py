"""The paths that a command may reach if others are hidden: everything around those, piece by piece.

Landlock can only grant. So a folder with a hidden path in it is granted in pieces, each of them whole. The pieces are
listed again for each command: a file that appears meanwhile in such a folder cannot be reached, and the folder itself
cannot be listed, only its pieces. No link is followed: its target is granted at its own place, or not at all.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path


def find_withheld(paths: Iterable[str]) -> frozenset[str]:
    """Return the real places of those paths that exist now, readable or not.

    A link is hidden at its target: the link itself is never granted. A path in a closed folder is hidden with that
    folder, which a command of the same user could open.
    """
    found = map(_find_reached, paths)
    return frozenset(os.path.realpath(one) for one in found if one)


def _find_reached(path: str) -> str:
    """Return the path, or the closed folder in front of it; "" if neither exists."""
    try:
        os.lstat(path)
    except PermissionError:
        return _find_reached(str(Path(path).parent))
    except OSError:
        return ""
    return path


def list_pieces(top: str, hidden: frozenset[str]) -> tuple[str, ...]:
    """Return the fewest paths that cover everything below `top` without the hidden paths."""
    start = os.path.realpath(top)
    within = "/" if start == "/" else f"{start}/"
    below = {one for one in hidden if one.startswith(within)}
    above = {str(parent) for one in below for parent in Path(one).parents}
    return tuple(_list_below(start, below, above)) if below else (start,)


def find_inside(place: str, folders: Iterable[str]) -> Path | None:
    """Return the real place of a path inside the first of these folders on its way; None if it is in none of them.

    The agent may create links in such a folder, so none below it is followed.
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
