"""Findings about owners and modes: files of the home that other users could change, or secrets that they could read."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gateway.config.home import Home, is_private
from gateway.errors import ConfigError
from gateway.yaml_source.tree import Finding, Severity, SourceLocation

OTHER_OWNER = "belongs to another user"


def list_places(home: Home) -> tuple[tuple[Path, str, bool], ...]:
    """List the files that we obey or keep secrets in: path, expected kind, and True if a link to it is accepted."""
    return (
        (home.root, "a directory", True),
        (home.own_folder, "a directory", False),
        (home.config, "the file itself", False),
        (home.env, "the file itself", True),
    )


def check_home(home: Home) -> Iterator[Finding]:
    """Yield the faults of the places of this home, as far as they exist, without changing anything."""
    for path, wanted, follow in list_places(home):
        misshapen = [*check_shape(path, wanted, follow=follow)]
        yield from misshapen or (*check_owner(path), *check_writers(path))
    yield from check_readers(home.env)


def prepare_home(home: Home) -> None:
    """Make the missing directories of the home, accessible to us alone, and leave everything else as it is.

    Raises:
        ConfigError: other users could change our files, or the home cannot be written.
    """
    wrong = [finding for finding in check_home(home) if finding.severity == "error"]
    if wrong:
        raise ConfigError("\n".join(map(str, wrong)))
    for directory in (home.root, home.own_folder, home.logs, home.hook_logs, home.hook_state, home.files):
        _make_directory(directory)
    if home.own_folder.stat().st_mode & 0o077:
        home.own_folder.chmod(0o700)
    if home.socket.parent != home.own_folder:
        _make_directory(home.socket.parent)
        if not is_private(home.socket.parent):
            what = f"the directory of the control socket is not ours alone: {home.socket.parent}"
            raise ConfigError(f"{what}\nremove it, or give the home a shorter path with HERMES_HOME")


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK | os.X_OK):
            is_read_only = os.statvfs(directory).f_flag & os.ST_RDONLY
            raise PermissionError(0, "its file system is read-only" if is_read_only else "no permission to write")
    except OSError as error:
        remedy = "make it writable for you, or choose another home with HERMES_HOME"
        raise ConfigError(f"the home cannot be written: {directory}: {error.strerror}\n{remedy}") from None


def check_shape(path: Path, wanted: str, *, follow: bool) -> Iterator[Finding]:
    """Yield a finding if the path is of another kind than `wanted`, which is in words."""
    found = _stat(path, follow=follow)
    if found and stat.S_ISLNK(found.st_mode):
        yield make_finding(path, "a link, which could lead anywhere", f"put {wanted} in its place")
    elif found and wanted == "a directory" and not stat.S_ISDIR(found.st_mode):
        yield make_finding(path, "not a directory", f"put {wanted} in its place")


def check_owner(path: Path) -> Iterator[Finding]:
    """Yield a finding if the owner is neither our user nor root."""
    found = _stat(path, follow=True)
    if found and found.st_uid not in (os.geteuid(), 0):
        remedy = f"run the gateway as that user, or: chown {os.geteuid()} {path}"
        yield make_finding(path, f"{OTHER_OWNER} (uid {found.st_uid})", remedy)


def check_writers(path: Path) -> Iterator[Finding]:
    """Yield a finding if other users can change it."""
    found = _stat(path, follow=True)
    if found and found.st_mode & stat.S_IWOTH:
        yield make_finding(path, "everybody on this machine can change it", f"run: chmod o-w {path}")
    elif found and found.st_mode & stat.S_IWGRP:
        yield make_finding(path, "its group can change it", f"run: chmod g-w {path}", "warning")


def check_readers(path: Path, what: str = "others can read your secrets") -> Iterator[Finding]:
    """Yield a finding if others can read it. `check_writers` reports the worse case, that they can change it."""
    found = _stat(path, follow=True)
    if found and found.st_mode & (stat.S_IRGRP | stat.S_IROTH) and not found.st_mode & 0o022:
        mode = 700 if stat.S_ISDIR(found.st_mode) else 600
        yield make_finding(path, what, f"run: chmod {mode} {path}", "warning")


def _stat(path: Path, *, follow: bool) -> os.stat_result | None:
    try:
        return path.stat() if follow else path.lstat()
    except OSError:
        return None


def make_finding(path: Path, what: str, remedy: str, severity: Severity = "error") -> Finding:
    return Finding(SourceLocation(str(path)), what, remedy, severity)
