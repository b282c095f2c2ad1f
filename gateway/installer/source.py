"""Where a hook is offered: a folder, an archive, a git repository, a Python package; and its files, fetched from there.

A source is written as one text, which `hooks.lock` keeps and which says the same in another home.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from gateway.errors import HookError
from gateway.hooks.folders.installed import remove_login
from gateway.hooks.folders.trusted_copy import read_whole_folder
from gateway.installer.archive import MAX_BYTES, extract_archive, is_archive
from gateway.installer.download import download, is_own_host
from gateway.installer.packages import ENTRY_POINTS, find_package_hooks, install_packages, lock_package, lock_packages
from gateway.installer.repository import CREDENTIALS, SCHEMES, extract_commit, fetch_commit
from gateway.logs.text import to_one_line

SourceKind: TypeAlias = Literal["folder", "archive", "git", "package"]
PACKAGE_PREFIX, GIT_PREFIX, WHEEL = "package:", "git+", ".whl"
FORMS = "a folder, an archive, git+https://HOST/REPOSITORY@REF#FOLDER, package:NAME, or a name of an index"
_VERSION_BEGINS = re.compile(r"[-_]v?\d")
_VERSION_WANTED = re.compile(r"[\s=<>!~;\[(]")


@dataclass(frozen=True, slots=True)
class HookSource:
    """`place`: a path, an address, or a package with its versions; `inner`: the folder in it, or the entry point."""

    kind: SourceKind
    place: str
    ref: str = ""
    inner: str = ""

    def __str__(self) -> str:
        inner = self.inner and f"#{self.inner}"
        if self.kind == "git":  # what asks for something stands behind the ref, as it was written
            parts = urlsplit(self.place)
            place = parts._replace(path=f"{parts.path}@{self.ref}").geturl() if self.ref else self.place
            return f"{GIT_PREFIX}{place}{inner}"
        prefix = PACKAGE_PREFIX if self.kind == "package" and not self.is_local else ""
        return f"{prefix}{self.place}{inner}"

    @property
    def is_local(self) -> bool:
        """Whether it lies on this machine."""
        return self.kind != "git" and self.place.startswith("/")


@dataclass(frozen=True, slots=True)
class FetchedFiles:
    """A folder with a hook, as it came. `packages`: what else came, laid out in `packages_folder`."""

    folder: Path
    name: str
    commit: str | None = None
    packages: tuple[str, ...] = ()
    packages_folder: Path | None = None


def parse_source(text: str) -> HookSource:
    """What is meant.

    Raises:
        HookError: it is none of what there is.
    """
    check_login(text)
    try:
        if "\0" in text:
            raise ValueError("it has a NUL byte")
        return _parse(text)
    except (ValueError, OSError, RuntimeError) as error:  # an address, a path or a name of a user that none can be
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HookError(f"{to_one_line(text, 200)} is no source: {to_one_line(what, 200)}\nname {FORMS}") from None


def _parse(text: str) -> HookSource:
    if text.startswith(GIT_PREFIX):
        return _parse_git(text.removeprefix(GIT_PREFIX))
    place, _, inner = text.partition("#")
    if text.startswith(PACKAGE_PREFIX):
        return HookSource("package", _as_path(place.removeprefix(PACKAGE_PREFIX)), inner=inner)
    _check_inner(inner)
    if place.startswith(("https://", "http://")):
        if is_archive(urlsplit(place).path):
            return HookSource("archive", place, inner=inner)
        if urlsplit(place).path.endswith(".json"):
            remedy = f"an index is added first: hermes-gateway hooks index add {to_one_line(place)} --key KEY"
        else:
            remedy = f"a repository is written as git+{to_one_line(place)}"
        raise HookError(f"{to_one_line(place)} is no archive\n{remedy}")
    path = Path(place).expanduser().resolve()
    if place and path.is_dir():
        return HookSource("folder", str(_find_inside(path, inner)))
    if path.is_file():
        kind: SourceKind = "package" if path.suffix == WHEEL else "archive"
        return HookSource(kind, str(path), inner=inner)
    raise HookError(f"{to_one_line(str(path))} is not there\nname {FORMS}")


def parse_installed_source(text: str) -> HookSource:
    """The source of something that is installed.

    Raises:
        HookError: it lay on this machine, and is there no more.
    """
    try:
        return parse_source(text)
    except HookError as error:
        what = f"{str(error).partition(chr(10))[0]}, where it came from; what is installed stays as it is"
        raise HookError(
            f"{what}\nput it back there, or remove the installed one and install it from elsewhere"
        ) from None


def check_login(address: str) -> None:
    """HookError: it has a name and a password or token in it, which would be kept, printed and passed on."""
    if (bare := remove_login(address)) != address:
        what = f"{to_one_line(bare)} was written with a password or a token, which would be kept and shown"
        remedy = CREDENTIALS if address.startswith(GIT_PREFIX) else "fetch it yourself, and give the file"
        raise HookError(f"{what}\nleave it out: {remedy}")


def _find_inside(folder: Path, inner: str) -> Path:
    """HookError: a link leads elsewhere."""
    if not (found := (folder / inner).resolve()).is_relative_to(folder):
        raise HookError(f"#{to_one_line(inner)} is a link that leads out of {folder}\nname the folder itself: {found}")
    return folder / inner


def _as_path(place: str) -> str:
    return str(Path(place).expanduser().resolve()) if place.endswith(WHEEL) else place


def _parse_git(text: str) -> HookSource:
    address, _, inner = text.partition("#")
    _check_inner(inner)
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES or not (parts.netloc or parts.scheme == "file"):
        raise HookError(f"git+{to_one_line(text)} names no repository\nwrite git+https://HOST/REPOSITORY@REF#FOLDER")
    if parts.scheme == "http" and not is_own_host(parts.hostname or ""):
        raise HookError(f"git+{to_one_line(text)}: what is installed is fetched over https or ssh\nwrite git+https://")
    path, _, ref = parts.path.partition("@")
    return HookSource("git", parts._replace(path=path).geturl(), ref, inner)


def _check_inner(inner: str) -> None:
    parts = inner.split("/") if inner else ()
    if inner.startswith("-") or any(part in ("", ".", "..") for part in parts) or not inner.isprintable():
        raise HookError(f"#{to_one_line(inner)} is no folder in there\nwrite its path: #hooks/greet")


def fetch(source: HookSource, work: Path, environ: Mapping[str, str], locked: tuple[str, ...] = ()) -> FetchedFiles:
    """Its files, below `work`. `locked`: packages, where just these are wanted.

    Raises:
        HookError: it is not to be had, or is not as hooks are.
    """
    files = work / "files"
    files.mkdir(mode=0o700)
    match source.kind:
        case "folder":
            _copy_folder(Path(source.place), files)
            return FetchedFiles(files, Path(source.place).name)
        case "archive":
            return _fetch_archive(source, work, files)
        case "git":
            commit = fetch_commit(source.place, source.ref, work / "repository", environ)
            if is_archive(source.inner):  # so an index can lie in a repository and on a web host
                folder, _, name = source.inner.rpartition("/")
                extract_commit(work / "repository", commit, folder, work, environ, name)
                return replace(_unpack(work / name, "", files), commit=commit)
            extract_commit(work / "repository", commit, source.inner, files, environ)
            name = source.inner.rpartition("/")[2] or urlsplit(source.place).path.rstrip("/").rpartition("/")[2]
            return FetchedFiles(files, name.removesuffix(".git"), commit)
        case "package":
            return _fetch_package(source, work, files, locked)


def _copy_folder(folder: Path, files: Path) -> None:
    """HookError: it cannot be read, is too large, or has names that nobody can be shown."""
    whole = read_whole_folder(folder)
    if odd := next((name for name in (*whole.files, *whole.links) if not name.isprintable()), ""):
        raise HookError(f"{folder.name} holds {to_one_line(repr(odd))}, which cannot be shown; rename it")
    whole.write_to(files)


def _fetch_archive(source: HookSource, work: Path, files: Path) -> FetchedFiles:
    archive = Path(source.place)
    if not source.is_local:
        archive = work / (urlsplit(source.place).path.rpartition("/")[2] or "archive")
        archive.write_bytes(download(source.place, MAX_BYTES))
    return _unpack(archive, source.inner, files)


def _unpack(archive: Path, inner: str, files: Path) -> FetchedFiles:
    extract_archive(archive, files)
    folder, name = files, archive.name
    entries = list(files.iterdir())
    if len(entries) == 1 and entries[0].is_dir():  # most archives have one folder, with all in it
        folder, name = entries[0], entries[0].name
    if inner:
        inside = (folder / inner, files / inner)  # it may be written with that one folder, too
        folder, name = next(filter(Path.is_dir, inside), inside[0]), inner.rpartition("/")[2]
        if not folder.is_dir():
            raise HookError(f"{archive.name} has no folder {to_one_line(inner)}")
    return FetchedFiles(folder, _VERSION_BEGINS.split(name.removesuffix(".gz").partition(".")[0], maxsplit=1)[0])


def _fetch_package(source: HookSource, work: Path, files: Path, locked: tuple[str, ...]) -> FetchedFiles:
    place, wanted, wheel = work / "packages", source.place, None
    if source.is_local:  # what it needs comes from where pip looks
        (work / "wheels").mkdir()
        wheel = Path(shutil.copy2(source.place, work / "wheels"))
        wanted = "==".join(wheel.name.split("-")[:2])
    locked = locked or (lock_package(wheel) if wheel else lock_packages([wanted]))
    install_packages(locked, place, wheel)
    offered = find_package_hooks(place)
    name = source.inner or (next(iter(offered)) if len(offered) == 1 else "")
    if name not in offered:
        there = f"; it has {', '.join(sorted(offered))}: write package:{wanted}#NAME" if offered else ""
        raise HookError(f"{to_one_line(wanted)} offers no hook under the entry point {ENTRY_POINTS}{there}")
    _copy_folder(offered[name], files)
    return FetchedFiles(files, name, packages=locked, packages_folder=place)


def remove_version(source: str) -> str:
    """The same for each version of what lies there.

    Of a file of this machine the whole name counts: archives of many people lie in one folder of downloads.
    """
    place, _, inner = source.partition("#")
    if place.startswith(GIT_PREFIX):
        parts = urlsplit(place)
        place = parts._replace(path=parts.path.partition("@")[0]).geturl()
    elif place.startswith(PACKAGE_PREFIX):
        place = _VERSION_WANTED.split(place, maxsplit=1)[0]
    elif not place.startswith("/") and is_archive(urlsplit(place).path):
        path, mark, query = place.partition("?")  # that may say whose it is
        folder, _, name = path.rpartition("/")
        place = f"{folder}/{_VERSION_BEGINS.split(name, maxsplit=1)[0]}{mark}{query}"
    return f"{place}#{inner}"


def limit_to_commit(source: HookSource, commit: str | None) -> HookSource:
    """The same, at just this commit."""
    return replace(source, ref=commit) if source.kind == "git" and commit else source
