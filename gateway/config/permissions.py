"""Who else could write what we obey, or read what we keep: the owners and modes of the home and of the files in it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gateway.config.home import Home, is_private
from gateway.errors import ConfigError
from gateway.yaml_source import Finding, Severity, SourceLocation


def check_home(home: Home) -> Iterator[Finding]:
    """What is wrong with the places of this home, as far as they exist; nothing is made or changed."""
    yield from _check_path(home.root, "a directory", follow=True)
    yield from _check_path(home.own_folder, "a directory", follow=False)
    yield from _check_path(home.config, "the file itself", follow=False)
    yield from _check_path(home.env, "the file itself", follow=True)
    found = _stat(home.env, follow=True)
    if found and found.st_mode & (stat.S_IRGRP | stat.S_IROTH) and not found.st_mode & 0o022:
        yield make_finding(home.env, "others can read your secrets", f"run: chmod 600 {home.env}", "warning")


def prepare_home(home: Home) -> None:
    """Make our directories, for us alone, where they are missing; leave everything else as it is.

    Raises:
        ConfigError: somebody else could change what we do, or the home cannot be written.
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
            raise PermissionError(0, "no permission to write")
    except OSError as error:
        remedy = "make it writable for you, or choose another home with HERMES_HOME"
        raise ConfigError(f"the home cannot be written: {directory}: {error.strerror}\n{remedy}") from None


def _check_path(path: Path, wanted: str, *, follow: bool) -> Iterator[Finding]:
    """`wanted` is what should be there, in words."""
    found = _stat(path, follow=follow)
    if found is None:
        return
    if stat.S_ISLNK(found.st_mode) or (wanted == "a directory" and not stat.S_ISDIR(found.st_mode)):
        what = "a link, which could lead anywhere" if stat.S_ISLNK(found.st_mode) else "not a directory"
        yield make_finding(path, what, f"put {wanted} in its place")
        return
    if found.st_uid not in (os.geteuid(), 0):
        remedy = f"run the gateway as that user, or: chown {os.geteuid()} {path}"
        yield make_finding(path, f"belongs to another user (uid {found.st_uid})", remedy)
    if found.st_mode & stat.S_IWOTH:
        yield make_finding(path, "everybody on this machine can change it", f"run: chmod o-w {path}")
    elif found.st_mode & stat.S_IWGRP:
        yield make_finding(path, "its group can change it", f"run: chmod g-w {path}", "warning")


def _stat(path: Path, *, follow: bool) -> os.stat_result | None:
    try:
        return path.stat() if follow else path.lstat()
    except OSError:
        return None


def make_finding(path: Path, what: str, remedy: str, severity: Severity = "error") -> Finding:
    return Finding(SourceLocation(str(path)), what, remedy, severity)
