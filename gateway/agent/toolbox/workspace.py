"""The files that an agent may touch: below some roots, and never files that would give it power over the gateway.

A path is resolved first, so that `..` and links are judged by their target. Then it is opened again from the root's own
descriptor, one segment at a time and following no link: a program that swaps a directory for a link in between gets an
error, not our file. Forbidden places (hooks, configuration, pairings) are known by device and inode as well as by name,
so that neither another spelling nor a mount leads there.

Files that steer later turns (instructions that precede them, and programs that git runs) are read-only: otherwise a
person who talks the agent into something once would also control the next turns, and those of other people.
"""

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

from gateway.errors import AgentError
from gateway.files.folders import INSTRUCTION_FOLDERS, INSTRUCTIONS
from gateway.worker.readable_paths import find_inside

LARGEST = 10_000_000
OUTSIDE = "is outside of what the agent may touch"
LOCK_PATIENCE = 5.0  # seconds
LOCK_PAUSE = 0.01
SAME_NAMES = 3  # a conversation's folder has at each gateway: `files`, the network, the conversation
NOT_WRITTEN = (
    "{path} steers later turns: you can read it, and not write it. Tell the person what you would change, as a "
    "proposal; the owner of the gateway puts it there"
)
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class GuardedFile(AgentError):
    """A place of keys, or of files that run by themselves. `place` is the path without links."""

    def __init__(self, path: str, place: Path) -> None:
        super().__init__(f"{path} is not open to the agent: a place of keys, or of what runs by itself")
        self.place = place


class Workspace(msgspec.Struct, frozen=True):
    """Files below `roots`. Relative paths begin at the first of them; places at or below `forbidden` are out of reach.

    `instructions` are read-only, like files with a name of `INSTRUCTIONS`. `opened` are the roots that are open
    although a forbidden place holds them, apart from forbidden places inside them; their files are also found in the
    folder around them, where they once were, and by the paths that they have at other gateways. Files in `readable` are
    read-only. `guarded` are places within roots that need an approval; a root within one of them is that approval.
    `only`: no other path is in reach.
    """

    roots: tuple[Path, ...]
    forbidden: tuple[Path, ...] = ()
    instructions: tuple[Path, ...] = ()
    opened: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    guarded: tuple[Path, ...] = ()
    only: Path | None = None

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises AgentError if it cannot be had."""
        with self._open_file(path) as file:
            if os.fstat(file).st_size > LARGEST:
                raise AgentError(f"{path} is larger than {LARGEST:,} bytes")
            with os.fdopen(file, "rb", closefd=False) as stream:
                return stream.read(LARGEST)

    def resolve(self, path: str) -> Path:
        """Return the real path of a file, without links. Raises AgentError if it cannot be had."""
        with self._open_file(path):
            root, parts = self._find_root(path)
        return root.joinpath(*parts)

    def write(self, path: str, content: bytes) -> os.stat_result | None:
        """Write a file, whole or not at all, with its directories. Returns the state of the file before, or None."""
        return self.change(path, lambda _: content)

    def change(self, path: str, make: Callable[[Callable[[], bytes]], bytes]) -> os.stat_result | None:
        """Write what `make` returns for the content, which it may read; no other task changes the file meanwhile."""
        self._check_may_write(path)
        with self._parent(path, make=True) as (folder, name), _lock_folder(folder, path):
            content, before, mode = make(partial(self.read, path)), None, 0o600
            if len(content) > LARGEST:
                raise AgentError(f"that is more than {LARGEST:,} bytes")
            with suppress(FileNotFoundError):
                before = os.stat(name, dir_fd=folder, follow_symlinks=False)
                self._check_is_free(before, path)
                if (before.st_dev, before.st_ino) in _find_inodes(self.instructions):
                    raise AgentError(NOT_WRITTEN.format(path=path))
                if not stat.S_ISREG(before.st_mode):
                    raise AgentError(f"{path} is not a regular file")
                mode = stat.S_IMODE(before.st_mode)
            _replace_file(folder, name, content, mode)
            return before

    def list(self, path: str) -> list[tuple[str, bool, int]]:
        """Return the entries of a directory, sorted: name, True for a directory, size."""
        with self._folder(self._find_root(path), path) as folder:
            return sorted(self._items(folder))

    def _items(self, folder: int) -> Iterator[tuple[str, bool, int]]:
        taken = self._taken()
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    known = entry.stat(follow_symlinks=False)
                    if (known.st_dev, known.st_ino) not in taken:
                        yield entry.name, stat.S_ISDIR(known.st_mode), known.st_size

    def _find_root(self, path: str) -> tuple[Path, tuple[str, ...]]:
        """Find the root that holds a path when all its links are followed, and the rest of the path."""
        if "\0" in path:
            raise AgentError("a path cannot contain a null character")
        if not self.roots:
            raise AgentError("no directory is open to the agent here: tools.roots in config.yaml names some")
        with _translate_errors(path):  # what changes while it is being resolved is not there
            real = Path(os.path.realpath(self._find_moved(self.roots[0] / Path(path).expanduser())))
        forbidden = _find_depth(real, self.forbidden)
        is_opened = _find_depth(real, self.opened) > forbidden
        if forbidden and not is_opened:
            raise AgentError(f"{path} is not open to the agent")
        bases = self._list_bases((*self.roots, *self.readable))
        if _find_depth(real, self.guarded) > _find_depth(real, bases) or self.only not in (None, real):
            raise GuardedFile(path, real)
        for base in self._list_bases(self.opened) if is_opened else bases:
            if real.is_relative_to(base):
                return base, real.relative_to(base).parts
        raise AgentError(f"{path} {OUTSIDE}: {', '.join(map(str, self.roots))}")

    def _list_bases(self, places: Sequence[Path]) -> tuple[Path, ...]:
        """Return the real places of these. Links in a root are not followed: a command may have made one there."""
        roots = [os.path.realpath(root) for root in self.roots]
        bases = [find_inside(str(one), roots) or Path(os.path.realpath(one)) for one in places]
        return tuple(sorted(bases, key=lambda base: len(base.parts)))  # from the outermost on, no link is opened

    def _find_moved(self, path: Path) -> Path:
        """Return the path, or the file's new place if it was once there or is there at another gateway.

        Transcripts name such paths.
        """
        moved = (folder / path.name for folder in self.opened if path.parent == folder.parent)
        if file := next((file for file in moved if file.is_file()), None):
            return file
        if path.exists() and any(path.is_relative_to(root) for root in self.roots):
            return path
        return next((place for folder in self.opened if (place := _find_in_folder(path, folder))), path)

    @contextmanager
    def _open_file(self, path: str) -> Iterator[int]:
        with self._parent(path) as (folder, name), _open_at(name, os.O_RDONLY, folder) as file:
            known = os.fstat(file)
            self._check_is_free(known, path)
            if not stat.S_ISREG(known.st_mode):
                raise AgentError(f"{path} is {'a directory' if stat.S_ISDIR(known.st_mode) else 'not a regular file'}")
            yield file

    @contextmanager
    def _parent(self, path: str, make: bool = False) -> Iterator[tuple[int, str]]:
        root, parts = self._find_root(path)
        if not parts and root.is_file():  # a file that is itself open to the agent; nothing goes beside it
            if make:
                raise AgentError(f"{path} can be read here, and not written")
            root, parts = root.parent, (root.name,)
        if not parts:
            raise AgentError(f"{path} is a directory")
        with self._folder((root, parts[:-1]), path, make) as folder:
            yield folder, parts[-1]

    @contextmanager
    def _folder(self, place: tuple[Path, tuple[str, ...]], path: str, make: bool = False) -> Iterator[int]:
        """Open a descriptor of the directory without following a link."""
        root, parts = place
        with _translate_errors(path):
            folder = os.open(root, DIRECTORY)
        try:
            for part in parts:
                with _translate_errors(path):
                    if make:
                        with suppress(FileExistsError):
                            os.mkdir(part, 0o700, dir_fd=folder)
                    below = os.open(part, DIRECTORY, dir_fd=folder)
                os.close(folder)
                folder = below
                self._check_is_free(os.fstat(folder), path)
            with _translate_errors(path):
                yield folder
        finally:
            os.close(folder)

    def _check_may_write(self, path: str) -> None:
        """Check that the real path may be written, by its names; a hard link to instructions is found later."""
        root, parts = self._find_root(path)
        if any(root == one.resolve() for one in self.readable):
            raise AgentError(f"{path} can be read here, and not written")
        names = [part.lower() for part in parts]
        real = root.joinpath(*parts)
        listed = {os.path.realpath(one) for one in self.instructions}
        if INSTRUCTION_FOLDERS & set(names) or INSTRUCTIONS & set(names[-1:]) or str(real) in listed:
            raise AgentError(NOT_WRITTEN.format(path=path))

    def _check_is_free(self, known: os.stat_result, path: str) -> None:
        if (known.st_dev, known.st_ino) in self._taken():
            raise AgentError(f"{path} is not open to the agent")

    def _taken(self) -> set[tuple[int, int]]:
        guarded = [one for one in self.guarded if not any(root.is_relative_to(one) for root in self.roots)]
        return _find_inodes((*self.forbidden, *guarded))


@contextmanager
def _lock_folder(folder: int, path: str) -> Iterator[None]:
    """Keep our other tasks from writing below a folder. A command that holds the lock delays no more than this."""
    limit = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > limit:
                raise AgentError(f"{path} is being written by another person; try again later") from None
            time.sleep(LOCK_PAUSE)
    yield  # closing the folder unlocks it


def _find_depth(real: Path, places: Iterable[Path]) -> int:
    """Return the depth of the nearest of these places that contains it; 0 if none does."""
    real_places = (Path(os.path.realpath(place)) for place in places)
    return max((len(place.parts) for place in real_places if real.is_relative_to(place)), default=0)


def _find_inodes(places: Iterable[Path]) -> set[tuple[int, int]]:
    """Return device and inode of the existing places."""
    found = set()
    for place in places:
        with suppress(OSError):
            known = place.stat()
            found.add((known.st_dev, known.st_ino))
    return found


def _replace_file(folder: int, name: str, content: bytes, mode: int) -> None:
    beside = f".{name[:200]}.{secrets.token_hex(6)}"
    try:
        with _open_at(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder, mode) as file:
            view = memoryview(content)
            while view:
                view = view[os.write(file, view) :]
            os.fchmod(file, mode)
            os.fsync(file)
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise


@contextmanager
def _open_at(name: str, flags: int, folder: int, mode: int = 0o600) -> Iterator[int]:
    # O_NONBLOCK: a named pipe in a file's place must not hold us up.
    file = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, mode, dir_fd=folder)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    """Translate errors of the system into words for the model."""
    try:
        yield
    except FileNotFoundError:
        raise AgentError(f"{path} not found") from None
    except OSError as error:
        words = "a link that leads elsewhere" if error.errno == errno.ELOOP else (error.strerror or "an error").lower()
        raise AgentError(f"{path}: {words}") from None


def _find_in_folder(path: Path, folder: Path) -> Path | None:
    """Return the path in this folder for another gateway's path with the same last names; None if elsewhere."""
    end, parts = folder.parts[-SAME_NAMES:], path.parts
    ends = (at for at in range(SAME_NAMES, len(parts) + 1) if parts[at - SAME_NAMES : at] == end)
    return next((folder.joinpath(*parts[at:]) for at in ends), None)


def make_workspace(
    roots: Sequence[Path],
    forbidden: Sequence[Path],
    instructions: Sequence[Path] = (),
    opened: Sequence[Path] = (),
    readable: Sequence[Path] = (),
    guarded: Sequence[Path] = (),
) -> Workspace:
    """Make the workspace with these roots; missing ones are made."""
    for root in roots:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Workspace(
        tuple(roots), tuple(forbidden), tuple(instructions), tuple(opened), tuple(readable), tuple(guarded)
    )
