"""Writes a change that was planned, and takes the last one back.

A file is written only while it is as the plan saw it, and is put in place whole, with the rights and the owner that it
had. The home keeps the bytes that the last write replaced, for `config undo`.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from gateway.config.changes import ChangeError, FileChange, SettingChange
from gateway.config.home import Home
from gateway.config.permissions import prepare_home
from gateway.errors import ConfigError
from gateway.files.folders import find_new_path, lock_path, open_new_file, put_in_place, read_plain_file, write_file


class KeptFile(msgspec.Struct, frozen=True):
    """A file that the last write changed: its bytes of before (None: it was not there), and what it became."""

    path: str
    before: bytes | None
    digest: str


def write_change(home: Home, change: SettingChange) -> None:
    """Write the files of a plan.

    Raises:
        ConfigError: a file changed since, is a link or cannot be written. No file is changed then, and the message has
            the lines to write by hand.
    """
    prepare_home(home)
    with _lock(home):
        check_files(change)
        _replace_all([(file.path, file.before, file.after) for file in change.files], _refuse(change.files))
        kept = [KeptFile(str(file.path), file.before, _digest(file.after)) for file in change.files]
        try:
            write_file(home.config_undo, msgspec.json.encode(kept))
        except OSError as error:
            _replace_all([(file.path, file.after, file.before) for file in change.files], _refuse(change.files))
            raise ChangeError(f"{home.config_undo} cannot be written: {error.strerror}; nothing was changed") from None


def check_files(change: SettingChange) -> None:
    """Raise ConfigError if a file of a plan is not as it was, or cannot be written, with the lines to write by hand."""
    for file in change.files:
        if reason := _find_obstacle(file):
            raise ConfigError(_by_hand(file, reason))


def undo_change(home: Home) -> list[Path]:
    """Put back what the last write replaced, and return the files.

    Raises:
        ConfigError: no change was found, or a person has edited a file since.
    """
    try:
        kept = msgspec.json.decode(read_plain_file(home.config_undo), type=list[KeptFile])
    except FileNotFoundError:
        raise ChangeError("no change to take back was found\n`config set` and `config unset` make one") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise ChangeError(f"{home.config_undo} cannot be read: {error}") from None
    with _lock(home):
        restored = [(Path(one.path), _read(Path(one.path)), one.before) for one in kept]
        for one, (path, now, _before) in zip(kept, restored, strict=True):
            if now is None or _digest(now) != one.digest or path.is_symlink():
                raise ChangeError(f"{path} was edited since; nothing was taken back\nchange it by hand")
        _replace_all(restored, lambda path, error: ChangeError(f"{path} cannot be written: {error.strerror}"))
        home.config_undo.unlink()
    return [path for path, _now, _before in restored]


@contextmanager
def _lock(home: Home) -> Iterator[None]:
    try:
        with lock_path(home.own_folder):
            yield
    except BlockingIOError:
        raise ChangeError("another command writes the configuration now\ntry again in a moment") from None


def _find_obstacle(file: FileChange) -> str:
    try:
        found = file.path.lstat()
    except OSError:
        return "is gone" if file.before is not None else ""
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        return "is a link, or no file"
    if not os.access(file.path, os.W_OK):
        return "is not writable for you"
    return "" if _read(file.path) == file.before else "has changed meanwhile"


def _read(path: Path) -> bytes | None:
    try:
        return read_plain_file(path)
    except OSError:
        return None


def _refuse(files: Iterable[FileChange]) -> "Callable[[Path, OSError], ConfigError]":
    by_path = {file.path: file for file in files}
    return lambda path, error: ConfigError(_by_hand(by_path[path], f"cannot be written: {error.strerror}"))


def _by_hand(file: FileChange, reason: str) -> str:
    return "\n".join((f"{file.path} {reason}; nothing was written", "write there by hand:", *file.lines))


def _replace_all(
    files: Sequence[tuple[Path, bytes | None, bytes | None]], refuse: "Callable[[Path, OSError], ConfigError]"
) -> None:
    """Write all of them; where one cannot be written, those before it are put back."""
    for at, (path, _old, new) in enumerate(files):
        try:
            _replace(path, new)
        except OSError as error:
            for done, old, _new in files[:at]:
                _replace(done, old)
            raise refuse(path, error) from None


def _replace(path: Path, data: bytes | None) -> None:
    if data is None:
        path.unlink(missing_ok=True)
        return
    try:
        found = path.stat()
    except FileNotFoundError:
        write_file(path, data)
        return
    try:
        with open_new_file(path) as file:
            os.fchmod(file.fileno(), stat.S_IMODE(found.st_mode))
            if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), found.st_uid, found.st_gid)
            file.write(data)
            put_in_place(file, path)
    finally:
        find_new_path(path).unlink(missing_ok=True)


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
