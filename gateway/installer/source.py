"""The source of a hook: a folder, an archive, a git repository or a Python package; and the fetching of its files.

A source is written as one text, which `hooks.lock` keeps and which means the same in another home.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from gateway.errors import HookError
from gateway.hooks.manifests.installed import remove_login
from gateway.hooks.places.trusted_copy import read_whole_folder
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
    """A source.

    `place`: a path, a URL, or a package with its versions; `inner`: the folder in it, or the entry point.
    """

    kind: SourceKind
    place: str
    ref: str = ""
    inner: str = ""

    def __str__(self) -> str:
        inner = self.inner and f"#{self.inner}"
        if self.kind == "git":  # a query is behind the ref, as it was written
            parts = urlsplit(self.place)
            place = parts._replace(path=f"{parts.path}@{self.ref}").geturl() if self.ref else self.place
            return f"{GIT_PREFIX}{place}{inner}"
        prefix = PACKAGE_PREFIX if self.kind == "package" and not self.is_local else ""
        return f"{prefix}{self.place}{inner}"

    @property
    def is_local(self) -> bool:
        """True if the source is on this machine."""
        return self.kind != "git" and self.place.startswith("/")


@dataclass(frozen=True, slots=True)
class FetchedFiles:
    """A folder with a hook, as it was fetched. `packages`: the other packages, in `packages_folder`."""

    folder: Path
    name: str
    commit: str | None = None
    packages: tuple[str, ...] = ()
    packages_folder: Path | None = None


def parse_source(text: str) -> HookSource:
    """Parse the text of a source.

    Raises:
        HookError: it is not a source.
    """
    check_login(text)
    try:
        if "\0" in text:
            raise ValueError("it has a NUL byte")
        return _parse(text)
    except (ValueError, OSError, RuntimeError) as error:  # an impossible URL, path or user name
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HookError(f"{to_one_line(text, 200)} is not a source: {to_one_line(what, 200)}\nname {FORMS}") from None


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
        raise HookError(f"{to_one_line(place)} is not an archive\n{remedy}")
    path = Path(place).expanduser().resolve()
    if place and path.is_dir():
        return HookSource("folder", str(_find_inside(path, inner)))
    if path.is_file():
        kind: SourceKind = "package" if path.suffix == WHEEL else "archive"
        return HookSource(kind, str(path), inner=inner)
    raise HookError(f"{to_one_line(str(path))} is not there\nname {FORMS}")


def parse_installed_source(text: str) -> HookSource:
    """Parse the source of an installed entry.

    Raises:
        HookError: the source was on this machine, and has gone.
    """
    try:
        return parse_source(text)
    except HookError as error:
        what = f"{str(error).partition(chr(10))[0]}, where it came from; what is installed stays as it is"
        raise HookError(
            f"{what}\nput it back there, or remove the installed one and install it from elsewhere"
        ) from None


def check_login(address: str) -> None:
    """Raise HookError for a URL with a password or token, which would be stored, printed and passed on."""
    if (bare := remove_login(address)) != address:
        what = f"{to_one_line(bare)} was written with a password or a token, which would be kept and shown"
        remedy = CREDENTIALS if address.startswith(GIT_PREFIX) else "fetch it yourself, and give the file"
        raise HookError(f"{what}\nleave it out: {remedy}")


def _find_inside(folder: Path, inner: str) -> Path:
    """Return the folder at this path. Raises HookError if a link leads elsewhere."""
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
        raise HookError(f"#{to_one_line(inner)} is not a folder in there\nwrite its path: #hooks/greet")


def fetch(source: HookSource, work: Path, environ: Mapping[str, str], locked: tuple[str, ...] = ()) -> FetchedFiles:
    """Fetch the files of a source, below `work`. `locked`: the exact packages to install.

    Raises:
        HookError: it is not available, or has no valid form.
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
            if is_archive(source.inner):  # so an index can be in a repository and on a web host
                folder, _, name = source.inner.rpartition("/")
                extract_commit(work / "repository", commit, folder, work, environ, name)
                return replace(_unpack(work / name, "", files), commit=commit)
            extract_commit(work / "repository", commit, source.inner, files, environ)
            name = source.inner.rpartition("/")[2] or urlsplit(source.place).path.rstrip("/").rpartition("/")[2]
            return FetchedFiles(files, name.removesuffix(".git"), commit)
        case "package":
            return _fetch_package(source, work, files, locked)


def _copy_folder(folder: Path, files: Path) -> None:
    """Copy a folder. Raises HookError if it cannot be read, is too large, or has names that cannot be shown."""
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
    if len(entries) == 1 and entries[0].is_dir():  # most archives have one folder with all files
        folder, name = entries[0], entries[0].name
    if inner:
        inside = (folder / inner, files / inner)  # the path may include that one folder
        folder, name = next(filter(Path.is_dir, inside), inside[0]), inner.rpartition("/")[2]
        if not folder.is_dir():
            raise HookError(f"{archive.name} has no folder {to_one_line(inner)}")
    return FetchedFiles(folder, _VERSION_BEGINS.split(name.removesuffix(".gz").partition(".")[0], maxsplit=1)[0])


def _fetch_package(source: HookSource, work: Path, files: Path, locked: tuple[str, ...]) -> FetchedFiles:
    place, wanted, wheel = work / "packages", source.place, None
    if source.is_local:  # its requirements come from pip's registry
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
    """Return a source without its version.

    For a file of this machine the whole name counts: one folder of downloads has archives of many authors.
    """
    place, _, inner = source.partition("#")
    if place.startswith(GIT_PREFIX):
        parts = urlsplit(place)
        place = parts._replace(path=parts.path.partition("@")[0]).geturl()
    elif place.startswith(PACKAGE_PREFIX):
        place = _VERSION_WANTED.split(place, maxsplit=1)[0]
    elif not place.startswith("/") and is_archive(urlsplit(place).path):
        path, mark, query = place.partition("?")  # the query may name the owner
        folder, _, name = path.rpartition("/")
        place = f"{folder}/{_VERSION_BEGINS.split(name, maxsplit=1)[0]}{mark}{query}"
    return f"{place}#{inner}"


def limit_to_commit(source: HookSource, commit: str | None) -> HookSource:
    """Return the source at exactly this commit."""
    return replace(source, ref=commit) if source.kind == "git" and commit else source
