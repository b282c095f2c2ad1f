"""The indexes of hooks and skills: each is a signed file with a number and an expiry date.

An index is in a git repository, on a web host or on this machine; no server is needed. Its number and date prevent that
an old one passes for new: the last number that was seen is stored for each index.
"""

import datetime
import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

import msgspec

import hooks_builtin
from gateway.config.home import Home
from gateway.errors import HookError
from gateway.hooks.manifests.installed import Kind, remove_login
from gateway.hooks.places.switches import write_atomically
from gateway.installer.archive import is_archive
from gateway.installer.download import download
from gateway.installer.fetched_hook import NAME
from gateway.installer.index_file import (
    MAX_INDEX,
    SIGNATURE_ENDING,
    HookIndex,
    ListedHook,
    ListedSkill,
    read_index,
)
from gateway.installer.repository import extract_commit, fetch_commit
from gateway.installer.signature import NAMESPACE, verify_signature
from gateway.installer.source import GIT_PREFIX, HookSource, parse_source
from gateway.logs.text import to_one_line

UNSIGNED = f"its owner has to sign it, which writes that file: ssh-keygen -Y sign -n {NAMESPACE} -f KEY INDEX"
OWN_INDEX = Path(hooks_builtin.__file__).parent.parent / "sample_hooks" / "index.json"


class IndexRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A known index. `number` and `digest`: of the last one that was seen; `base`: its commit."""

    address: str
    key: str
    number: int = -1
    digest: str = ""
    base: str = ""
    at: float = 0.0


class IndexFile(msgspec.Struct, frozen=True, kw_only=True):
    v: int = 1
    indexes: tuple[IndexRecord, ...] = ()


OWN = IndexRecord(address=str(OWN_INDEX), key="")


def list_indexes(home: Home) -> tuple[IndexRecord, ...]:
    """List the indexes that were added, and the built-in one."""
    own = (OWN,) if OWN_INDEX.is_file() else ()
    try:
        known = msgspec.json.decode(home.hook_indexes.read_bytes(), type=IndexFile).indexes
    except FileNotFoundError:
        return own
    except (OSError, ValueError, RecursionError) as error:
        remedy = "remove it, and add the indexes again: hermes-gateway hooks index add ADDRESS --key KEY"
        raise HookError(f"{home.hook_indexes} cannot be read: {to_one_line(str(error), 200)}\n{remedy}") from None
    bare = (msgspec.structs.replace(one, address=remove_login(one.address)) for one in known)
    return (*bare, *own)


def set_indexes(home: Home, indexes: Iterable[IndexRecord]) -> None:
    """Store these indexes; the built-in one needs no record."""
    kept = IndexFile(indexes=tuple(one for one in indexes if one.key))
    write_atomically(home.hook_indexes, msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n")


class IndexReader:
    """The indexes during one command: each is read once, so one that does not answer delays the command only once."""

    def __init__(self, home: Home, environ: Mapping[str, str]) -> None:
        self.home, self._environ = home, environ
        self._found: dict[str, tuple[IndexRecord, HookIndex | HookError]] = {}

    def list(self, work: Path, address: str = "") -> Iterator[tuple[IndexRecord, HookIndex | HookError]]:
        """Yield all indexes, or the one of this address; for an invalid one, the error."""
        for known in list_indexes(self.home):
            if address in ("", known.address):
                yield self._read(known, work)

    def read(self, known: IndexRecord, work: Path) -> tuple[IndexRecord, HookIndex]:
        """Read an index. Raises HookError if it is not valid."""
        seen, index = self._read(known, work)
        if isinstance(index, HookError):
            raise index
        return seen, index

    def _read(self, known: IndexRecord, work: Path) -> tuple[IndexRecord, HookIndex | HookError]:
        if known.address not in self._found:
            place = work / f"index-{len(self._found)}"
            place.mkdir()
            try:
                self._found[known.address] = load_index(self.home, known, place, self._environ)
            except HookError as error:
                self._found[known.address] = known, error
        return self._found[known.address]


def load_index(home: Home, known: IndexRecord, work: Path, environ: Mapping[str, str]) -> tuple[IndexRecord, HookIndex]:
    """Load the present index; return it with its record, which is stored.

    Raises:
        HookError: it is not available, not signed by its key, older than one that was seen, or expired.
    """
    try:
        return _load(home, known, work, environ)
    except HookError as error:
        said = str(error)
        raise HookError(said if known.address in said else f"{known.address}: {said}") from None


def _load(home: Home, known: IndexRecord, work: Path, environ: Mapping[str, str]) -> tuple[IndexRecord, HookIndex]:
    data, signature, base = _fetch(known, work, environ)
    if known.key:
        verify_signature(data, signature, known.key)
    index = read_index(data, known.address)
    digest = hashlib.sha256(data).hexdigest()
    if known.key:
        _check_age(known, index, digest)
    seen = msgspec.structs.replace(known, number=index.number, digest=digest, base=base, at=time.time())
    if known.key and seen.digest != known.digest:
        records = {one.address: one for one in list_indexes(home)}  # in the order of their addition
        set_indexes(home, {**records, known.address: seen}.values())
    return seen, index


def _check_age(known: IndexRecord, index: HookIndex, digest: str) -> None:
    if index.number < known.number or (index.number == known.number and digest != known.digest):
        what = f"{known.address} is number {index.number}, and number {known.number} was seen before"
        raise HookError(f"{what}: this is an old one that passes for new, or it was published twice")
    try:
        end = datetime.date.fromisoformat(index.expires)
    except ValueError:
        raise HookError(f"{known.address} does not say when it ends") from None
    if end < datetime.datetime.now(datetime.UTC).date():
        raise HookError(f"{known.address} counts no more since {end}\nits owner has to publish it again")


def _fetch(known: IndexRecord, work: Path, environ: Mapping[str, str]) -> tuple[bytes, str, str]:
    """Fetch an index, its signature, and the commit of both."""
    address, commit = known.address, ""
    if address.startswith(("https://", "http://")):
        return download(address, MAX_INDEX), _download_signature(address) if known.key else "", ""
    file = Path(address)
    if address.startswith(GIT_PREFIX):
        source = parse_source(address)
        folder, _, name = source.inner.rpartition("/")
        repository, files = work / "index", work / "index-files"
        files.mkdir()
        file = files / (name or "index.json")
        commit = fetch_commit(source.place, source.ref, repository, environ)
        extract_commit(repository, commit, folder, files, environ, file.name)  # and its signature
    try:
        if file.stat().st_size > MAX_INDEX:
            raise HookError(f"{address} is larger than {MAX_INDEX:,} bytes")
        return file.read_bytes(), _read_signature(address, file) if known.key else "", commit
    except OSError as error:
        raise HookError(f"{address} cannot be read: {error.strerror}: {file.name}") from None


def _download_signature(address: str) -> str:
    """Download the signature beside an index. Raises HookError if it was not found."""
    try:
        return download(f"{address}{SIGNATURE_ENDING}", MAX_INDEX).decode("utf-8", "replace")
    except HookError as error:
        raise HookError(f"{error}\n{UNSIGNED}") from None


def _read_signature(address: str, index: Path) -> str:
    """Read the signature beside an index. Raises HookError if it was not found."""
    file = index.with_name(f"{index.name}{SIGNATURE_ENDING}")
    try:
        return file.read_text("utf-8", "replace")
    except OSError as error:
        what = f"{address} has no signature: {file.name} beside it: {error.strerror}"
        raise HookError(f"{what}\n{UNSIGNED}") from None


def is_listed_name(text: str) -> bool:
    """Return True for a name to look up in the indexes; a folder here is written `./NAME`.

    Otherwise a person beside the folder that they have published would install that folder, without a check of any
    signature.
    """
    return bool(NAME.match(text))


class ListedEntry(NamedTuple):
    """The entry of an index with a name. `unread`: why other indexes could not be read."""

    known: IndexRecord
    entry: ListedHook | ListedSkill
    unread: Sequence[str] = ()


def find_listed(indexes: IndexReader, kind: Kind, name: str, work: Path, address: str = "") -> ListedEntry:
    """Find the entry of this name, and its index. `address`: search only this index.

    Raises:
        HookError: no index has it, or several have different ones; or that index was not added, or is not valid.
    """
    if address:
        address = find_index(indexes.home, name, address).address
    found, names = list[tuple[IndexRecord, ListedHook | ListedSkill]](), set[str]()
    wrong, unread = list[str](), list[str]()
    other: Kind = "skill" if kind == "hook" else "hook"
    for known, index in indexes.list(work, address):
        if isinstance(index, HookError):
            unread.append(str(index))
            continue
        names |= index.of(kind).keys()
        if name in index.of(kind):
            found.append((known, index.of(kind)[name]))
        elif name in index.of(other):
            wrong.append(f"{known.address} has a {other} of that name: hermes-gateway {other}s install {name}")
    if address and (wrong or unread):
        raise HookError("\n".join((*unread, *wrong)))
    if not found:
        what = f"{address} has no {kind} {name}" if address else f"no index has such a {kind}: {name}"
        what += suggest_name(name, names)
        raise HookError("\n".join((what, *unread, *wrong, f"look for others: hermes-gateway {kind}s search WORD")))
    if len({entry.digest for _, entry in found}) > 1:
        places = "\n".join(f"hermes-gateway {kind}s install {make_listed_source(*one)}" for one in found)
        raise HookError(f"several indexes have different {kind}s {name}; choose one:\n{places}")
    # Updates come by the chosen index: the built-in one, or the first added one, even if others list the same.
    return ListedEntry(*min(found, key=lambda one: bool(one[0].key)), unread)


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Suggest what may have been meant; "" if nothing is similar."""
    if Path(name).exists():
        return f"; the folder here is ./{name}"
    near = get_close_matches(name, sorted(names), 1)
    return f"; did you mean {near[0]}?" if near else ""


def find_index(home: Home, name: str, address: str) -> IndexRecord:
    """Find the index by which an entry of this name came.

    Raises:
        HookError: it was not added here.
    """
    if is_own_index(home, address):
        return OWN
    for known in list_indexes(home):
        if known.address == address:
            return known
    what = f"no index {to_one_line(address)} was added here, and {name} comes by it"
    raise HookError(f"{what}\nadd it: hermes-gateway hooks index add {to_one_line(address)} --key KEY")


def is_own_index(home: Home, address: str) -> bool:
    """Return True for the built-in index, whose path differs between installations."""
    is_added = any(one.key and one.address == address for one in list_indexes(home))
    is_called_so = address.startswith("/") and Path(address).parts[-2:] == OWN_INDEX.parts[-2:]
    return is_called_so and OWN_INDEX.is_file() and not is_added


def make_listed_source(known: IndexRecord, entry: ListedHook | ListedSkill) -> HookSource:
    """Return the source of an entry. Raises HookError if hooks and skills cannot come from there."""
    address, said = known.address, entry.source
    if said.startswith("./"):
        inner = said.removeprefix("./").rstrip("/")
        if not inner.isprintable() or inner.startswith("/") or ".." in inner.split("/"):
            raise HookError(f"{to_one_line(said)} leads out of the index")
        if address.startswith(GIT_PREFIX):
            index = parse_source(address)
            folder = index.inner.rpartition("/")[0]
            return HookSource("git", index.place, known.base, f"{folder}/{inner}" if folder else inner)
        if address.startswith(("https://", "http://")):
            said = _find_archive(address, inner)
        else:
            said = str(Path(address).parent / inner)
    elif not said.startswith((GIT_PREFIX, "https://", "package:")):
        raise HookError(f"{to_one_line(said)} is not a place from which those of an index come")
    return parse_source(said)


def _find_archive(address: str, inner: str) -> str:
    """Return the URL of an archive. Raises HookError for a folder, since a web host serves single files only."""
    if is_archive(inner):
        return urljoin(address, inner)
    what = f"{address} names the folder ./{to_one_line(inner)}, and a web host gives no folders"
    remedy = "its owner can publish an archive in its place: hermes-gateway hooks publish FOLDER INDEX --archive"
    raise HookError(f"{what}\n{remedy}")
