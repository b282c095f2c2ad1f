"""The files whose text precedes every turn, protected from commands of the agent.

Theory of operation

The kernel's sandbox grants folders, and cannot exclude a file from a granted one: a command that works in the workspace
can write `AGENTS.md` there, make it a link to a secret, or remove it. So the version that counts is the one from before
the last command began. Before a command runs, a copy of each file is kept beside the journal, with a mark that commands
run; until they end, turns get the copy.

A file that differs when the command is over is *held*: turns go on with the copy, and the gateway's owner is notified.
A file that a command made a link, or moved behind one, is held too: the target of the link may appear later, or change.
The third case is a file that has a second name since, through which others can write it. When a file is changed again,
or just touched, while no command runs, then a person did it, and the file counts as it is.

A turn looks at the files, and reads them only if one differs from the turn before, if a command has begun or ended
since, or if a file was changed so recently that the next change might not show.

A gateway that was killed while a command ran finds the mark at its next start, and holds the files that differ from
their copies.
"""

import hashlib
import logging
import os
import stat
import threading
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import msgspec
from anyio import CancelScope

from gateway.errors import AgentError
from gateway.files.folders import read_plain_file
from gateway.threads import run_in_thread

log = logging.getLogger(__name__)

LONGEST_FILE = 32_000  # bytes of a context file
SETTLED = 2.0  # seconds: the coarsest clock of a file system
MOST_TEXTS = 64  # of agents that are remembered
RUNNING = "commands-run"
WHICH = 2  # the numbers of a state that say which file it is, however it changes

FileState: TypeAlias = tuple[int, ...]
"""By which a file is known to be untouched since; of one that is not there it is empty."""


class StoredFile(msgspec.Struct):
    """The content of a context file before commands ran and, if one has changed it, the state in which it was left."""

    path: str
    data: bytes = b""
    held: FileState | None = None
    place: str = ""  # where it was with all links resolved; empty: not looked up yet
    names: FileState = ()  # if it had several: which file it was, and how many


class RunningCommand(msgspec.Struct):
    """A command in its run; afterwards `changed` are the context files that it left as other ones."""

    changed: tuple[Path, ...] = ()


class ContextFiles:
    """All context files. `kept` is the folder of the copies; `read` reads files, so call it in a thread.

    `settled`: seconds after a change of a file in which the next change might not show.
    """

    def __init__(self, kept: Path, settled: float = SETTLED) -> None:
        self._folder = kept
        self._settled = settled
        self._running = 0
        self._is_saved = True  # else the folder does not say all that is known here
        self._lock = threading.Lock()
        self._files: dict[Path, StoredFile] = {}
        self._texts: dict[tuple[Path, ...], tuple[tuple[FileState, ...], str]] = {}  # joined, of files in these states
        self._commands = 0  # that have begun or ended: what files say may be something else since
        self._load()

    async def join(self, paths: tuple[Path, ...]) -> str:
        """Return the text of the files that exist, each under its name."""
        states, commands, looked = tuple([_find_whole_state(path) for path in paths]), self._commands, time.time_ns()
        known = self._texts.get(paths)
        if known and known[0] == states:
            return known[1]
        text = await run_in_thread(join_context_files, paths, self)
        last_change = max((changed for state in states for changed in state[4::5]), default=0)
        if commands == self._commands and looked - last_change > self._settled * 1e9:
            if len(self._texts) >= MOST_TEXTS:
                self._texts.clear()
            self._texts[paths] = states, text
        return text

    def read(self, path: Path) -> bytes:
        """Return the text of the file that counts, or "" without a file."""
        with self._lock:
            return self._find_text(path)

    def list_held(self) -> list[Path]:
        """List the files that a command has changed, and no person since."""
        with self._lock:
            return [path for path, kept in self._files.items() if self._is_held(path, kept)]

    def describe(self, path: Path) -> str:
        """Say why a held file is held, and how it can be read again."""
        kept = self._files[path]
        link = _find_new_link(path, kept.place)
        has_names = kept.held is not None and len(kept.held) == WHICH
        remedy = f"cp {path} {path}.own && mv {path}.own {path}" if has_names else f"touch {path}"
        remedy = f"touch -h {link}" if link else remedy
        return f"{path} was changed by a command, and is not read as it is now; if it may be, then: {remedy}"

    @asynccontextmanager
    async def watch(self, paths: Sequence[Path]) -> AsyncIterator[RunningCommand]:
        """Watch a command that may write these files, which runs inside the context.

        Raises:
            AgentError: their present content cannot be kept.
        """
        command = RunningCommand()
        with CancelScope(shield=True):  # what was begun is ended
            await run_in_thread(self._begin, paths)
        try:
            yield command
        finally:
            with CancelScope(shield=True):
                command.changed = await run_in_thread(self._end, paths)

    def _begin(self, paths: Sequence[Path]) -> None:
        with self._lock:
            self._forget_texts()
            try:
                if not self._running:
                    self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                    for path in paths:
                        self._keep(path, self._find_text(path))
                    (self._folder / RUNNING).touch()
                    self._is_saved = True
            except OSError as error:
                raise AgentError(f"no command can run: {self._folder} cannot be written: {error.strerror}") from None
            self._running += 1

    def _end(self, paths: Sequence[Path]) -> tuple[Path, ...]:
        with self._lock:
            self._forget_texts()
            self._running -= 1
            changed = tuple(path for path in paths if self._hold_if_changed(path))
            if not self._running and self._is_saved:
                (self._folder / RUNNING).unlink(missing_ok=True)
            return changed

    def _forget_texts(self) -> None:
        self._commands += 1
        self._texts.clear()

    def _find_text(self, path: Path) -> bytes:
        kept = self._files.get(path)
        if kept is not None and (self._running or self._is_held(path, kept)):
            return kept.data
        return read_context_file(path)

    def _is_held(self, path: Path, kept: StoredFile) -> bool:
        return kept.held is not None and kept.held == _find_state(path, kept.place)[: len(kept.held) or None]

    def _keep(self, path: Path, data: bytes) -> None:
        kept, place, names = self._files.get(path), os.path.realpath(path), _find_names(path)
        if kept is not None and self._is_held(path, kept):
            return
        if kept is None or kept.held is not None or (kept.data, kept.place, kept.names) != (data, place, names):
            self._files[path] = StoredFile(str(path), data, place=place, names=names)
            self._save(self._files[path])

    def _hold_if_changed(self, path: Path) -> bool:
        kept = self._files.get(path)
        if kept is None:  # it became a context file while the command ran
            return False
        link, has_names = _find_new_link(path, kept.place), _find_names(path) not in ((), kept.names)
        is_another = link or has_names or read_context_file(path) != kept.data
        state = _find_state(path, kept.place) if is_another else None
        if state and has_names and not link:
            state = state[:WHICH]
        if state == kept.held:
            return False
        self._files[path] = msgspec.structs.replace(kept, held=state)
        try:
            self._save(self._files[path])
        except OSError as error:  # in this life it is held; the mark that stays lets the next one find it
            self._is_saved = False
            log.warning("%s cannot be written: %s", self._folder, error.strerror)
        if state is not None:
            log.warning("%s", self.describe(path))
        return state is not None

    def _save(self, kept: StoredFile) -> None:
        place = self._folder / f"{hashlib.sha256(os.fsencode(kept.path)).hexdigest()[:24]}.json"
        beside = place.with_suffix(".new")
        beside.write_bytes(msgspec.json.encode(kept))
        beside.replace(place)

    def _load(self) -> None:
        """Load the copies of an earlier process, which may have ended while a command ran."""
        for place in self._folder.glob("*.json"):
            with suppress(OSError, msgspec.DecodeError):
                kept = msgspec.json.decode(read_plain_file(place), type=StoredFile)
                self._files[Path(kept.path)] = kept
        if (self._folder / RUNNING).exists():
            for path in self._files:
                self._hold_if_changed(path)
            (self._folder / RUNNING).unlink()


def join_context_files(paths: Iterable[Path], files: ContextFiles) -> str:
    """Join the texts of the files that exist, each under its name."""
    return "\n\n".join(text for path in paths if (text := _show_file(path, files.read(path))))


def read_context_file(path: Path) -> bytes:
    """Read the file up to a bit more than is shown. Anything but a plain file could block us, and gives no bytes."""
    with suppress(OSError):
        return read_plain_file(path, LONGEST_FILE + 1)
    return b""


def _show_file(path: Path, data: bytes) -> str:
    text = data[:LONGEST_FILE].decode("utf-8", "replace").strip()
    cut = f"\n[cut after {LONGEST_FILE} bytes]" if len(data) > LONGEST_FILE else ""
    return f"# {path.name}\n\n{text}{cut}" if text else ""


def _find_new_link(path: Path, place: str) -> Path | None:
    """Return the link nearest to the file, itself or a folder before it, if it leads elsewhere than to this place."""
    if not place or os.path.realpath(path) == place:
        return None
    return next((one for one in (path, *path.parents) if one.is_symlink()), None)


def _find_state(path: Path, place: str) -> FileState:
    """Return the state of a new link in front of it, if there is one: nothing behind that counts."""
    try:
        known = link.lstat() if (link := _find_new_link(path, place)) else path.stat()
    except OSError:
        return ()
    return (known.st_dev, known.st_ino, known.st_size, known.st_mtime_ns)


def _find_names(path: Path) -> FileState:
    """Return the file's identity and the number of its names; empty for a single name."""
    try:
        known = path.stat()
    except OSError:
        return ()
    return (known.st_dev, known.st_ino, known.st_nlink) if known.st_nlink > 1 and stat.S_ISREG(known.st_mode) else ()


def _find_whole_state(path: Path) -> FileState:
    """Return five numbers that identify an untouched file, its last change last; of a link and its target."""
    found: FileState = ()
    with suppress(OSError):
        own = os.lstat(path)
        for known in (own, os.stat(path)) if stat.S_ISLNK(own.st_mode) else (own,):  # noqa: PTH116 - as quick as can be
            found += (known.st_dev, known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns)
    return found
