"""The installed hooks and skills, and the rights that their owner agreed to: `hooks.lock`, written by the installer.

This module only reads the file. A hook counts as installed if the file names its folder, or if its folder is among the
installed folders; all other hooks were placed by hand. An installed hook has no right that the file does not list.
"""

import errno
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar
from urllib.parse import unquote

import msgspec

from gateway.config.webhooks import WebhookKeys
from gateway.errors import HookError
from gateway.events import OnError
from gateway.files.folders import read_plain_file
from gateway.hooks.manifests.manifest import Manifest, expand_path
from gateway.hooks.manifests.manifest_keys import Net
from gateway.hooks.manifests.reach import describe_network
from gateway.logs.redaction import SECRET_NAME
from gateway.logs.text import to_one_line

LOCK_VERSION = 1
INSTALLED_FOLDER = "installed"
SKILLS_FOLDER = "skills"  # inside INSTALLED_FOLDER
Kind: TypeAlias = Literal["hook", "skill"]
"""The kind of an installed entry."""
REMEDY = "install the hook again, or put back the file from a backup"
FILE_REMEDY = "put it back from a backup, or move it away and install all again"
_WEB_CREDENTIALS = re.compile(r"^((?:git\+)?https?://)[^/?#]*@", re.IGNORECASE)
_QUERY = re.compile(r"^((?:git\+)?https?://[^?#]*)\?([^#]*)", re.IGNORECASE)
_SSH_PASSWORD = re.compile(r"^(git\+ssh://[^/?#:@]*):[^/?#]*@", re.IGNORECASE)  # the name of the account stays


class HookGrants(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rights that the owner agreed to, in the words of HOOK.yaml."""

    events: tuple[str, ...] = ()
    intercepts: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    webhook: WebhookKeys | None = None
    schedule: str | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    net: Net | None = None
    url: str = ""
    on_error: OnError = "skip"


class InstalledHook(msgspec.Struct, frozen=True, kw_only=True):
    """One installed hook: its source, its contents, and its folder."""

    source: str = ""
    index: str = ""  # the index that had the hook, and that is searched for a newer version
    commit: str | None = None
    digest: str = ""
    path: str
    packages: tuple[str, ...] = ()  # installed with the hook: each with its version and file hashes
    packages_digest: str = ""  # of the installed packages
    stored_as: str = ""  # the name of the hook's store
    grants: HookGrants


class InstalledSkill(msgspec.Struct, frozen=True, kw_only=True):
    """One installed skill; `hooks` are its own hooks, which the owner agreed to together with the skill."""

    source: str = ""
    index: str = ""
    commit: str | None = None
    digest: str
    path: str
    hooks: dict[str, InstalledHook] = {}


class UnusedStore(msgspec.Struct, frozen=True, kw_only=True):
    """The store that an uninstalled hook left behind: the name of the store, and the source of the hook."""

    stored_as: str
    source: str = ""


class LockFile(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of `hooks.lock`; each entry is decoded separately, so that a bad entry spoils no other entry.

    `stores` names the stores of hooks that are or were installed, if the store's name is not the name made of the
    hook's source. `unused_stores` has, by hook name, the store that the last uninstalled hook of this name left.
    """

    version: int
    hooks: dict[str, msgspec.Raw]
    skills: dict[str, msgspec.Raw] = {}
    stores: dict[str, str] = {}
    unused_stores: dict[str, UnusedStore] = {}


class UnreadableEntry(msgspec.Struct, frozen=True):
    """The bytes of an entry in the file, and the reason why it cannot be read."""

    raw: msgspec.Raw
    reason: str


Entry = TypeVar("Entry", InstalledHook, InstalledSkill)


class HooksLock:
    """The reader of `hooks.lock`, which reads the file again after a change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._installed = f"{path.parent / INSTALLED_FOLDER}/"
        self._seen: tuple[int, ...] = ()
        self._entries: Mapping[str, InstalledHook | UnreadableEntry] = {}
        self._skills: Mapping[str, InstalledSkill | UnreadableEntry] = {}
        self._file = LockFile(version=LOCK_VERSION, hooks={})
        self._wrong = ""

    @property
    def stores(self) -> Mapping[str, str]:
        """Return the stores, as in the file."""
        self._follow()
        return self._file.stores

    @property
    def unused_stores(self) -> Mapping[str, UnusedStore]:
        """Return the unused stores, as in the file."""
        self._follow()
        return self._file.unused_stores

    @property
    def folder(self) -> Path:
        """Return the folder that the paths in the file start from."""
        return self._path.parent

    def list_files(self, folder: Path) -> list[Path]:
        """Return the lock file if the hook in this folder was installed, and so depends on that file."""
        return [self._path] if f"{folder}/".startswith(self._installed) else []

    @property
    def trouble(self) -> str:
        """Say why the file cannot be read; "" if it can be read."""
        self._follow()
        return self._wrong

    def list(self) -> Iterator[tuple[str, InstalledHook]]:
        """Yield the readable hooks, by name."""
        self._follow()
        for name, one in sorted(self._entries.items()):
            if isinstance(one, InstalledHook):
                yield name, one

    def get(self, name: str) -> InstalledHook | None:
        """Return the hook's entry; None if the entry is missing or unreadable."""
        self._follow()
        entry = self._entries.get(name)
        return entry if isinstance(entry, InstalledHook) else None

    def list_skills(self) -> Iterator[tuple[str, InstalledSkill]]:
        """Yield the readable skills, by name."""
        self._follow()
        for name, one in sorted(self._skills.items()):
            if isinstance(one, InstalledSkill):
                yield name, one

    def list_unreadable(self, kind: Kind = "hook") -> Iterator[tuple[str, msgspec.Raw]]:
        """Yield the unreadable entries of this kind with their bytes in the file."""
        self._follow()
        entries: Mapping[str, object] = self._entries if kind == "hook" else self._skills
        yield from ((name, one.raw) for name, one in entries.items() if isinstance(one, UnreadableEntry))

    def list_faults(self) -> Iterator[str]:
        """Yield a line for each unreadable entry, with the reason and the remedy."""
        self._follow()
        for kind, entries in (("hook", self._entries), ("skill", self._skills)):
            for name, one in sorted(entries.items()):
                if isinstance(one, UnreadableEntry):
                    yield self._describe_fault(kind, name, one)

    def _describe_fault(self, kind: str, name: str, entry: UnreadableEntry) -> str:
        remedy = f"{REMEDY.replace('hook', kind)}, or: hermes-gateway {kind}s remove {to_one_line(name)}"
        return f"{self._path}: {kind}s.{to_one_line(name)}: {entry.reason}; {remedy}"

    def find(self, folder: Path, name: str) -> InstalledHook | None:
        """Return the entry of the hook in this folder; None if a person placed the hook by hand.

        Raises HookError if the file does not show whether the hook was installed.
        """
        self._follow()
        lies_there = f"{folder}/".startswith(self._installed)
        if self._wrong and lies_there:
            raise HookError(self._wrong)
        if not (lies_there or self._entries or self._skills):
            return None
        if isinstance(known := self._entries.get(name), UnreadableEntry):
            raise HookError(self._describe_fault("hook", name, known))
        brought = (hook for _, skill in self.list_skills() for hook in skill.hooks.values())
        for one in (*(hook for _, hook in self.list()), *brought):
            if _is_same_place(self._path.parent / one.path, folder):
                return one
        if lies_there:
            raise HookError(f"{self._path} does not name it, so nobody agreed to it; {REMEDY}")
        return None

    def _follow(self) -> None:
        """Read the file again if it was changed, created or removed."""
        seen: tuple[int, ...]
        try:
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_ino, found.st_size)
        except OSError as error:
            seen = (error.errno or 0,)
        if seen == self._seen:
            return
        self._seen, self._wrong, file = seen, "", LockFile(version=LOCK_VERSION, hooks={})
        if seen != (errno.ENOENT,):
            try:
                file = _read_file(self._path)
            except (OSError, ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
                why = getattr(error, "strerror", None) or to_one_line(str(error))
                self._wrong = f"{self._path} cannot be read: {why}; {FILE_REMEDY}"
        self._file = file
        self._entries = {name: _read_entry(raw, InstalledHook) for name, raw in file.hooks.items()}
        self._skills = {name: _read_entry(raw, InstalledSkill) for name, raw in file.skills.items()}


def _read_file(path: Path) -> LockFile:
    file = msgspec.json.decode(read_plain_file(path), type=LockFile)
    if file.version != LOCK_VERSION:
        raise ValueError(f"it is of version {file.version}, and this gateway knows version {LOCK_VERSION}")
    return file


def _read_entry(raw: msgspec.Raw, kind: type[Entry]) -> Entry | UnreadableEntry:
    try:
        entry = msgspec.json.decode(raw, type=kind)
    except (ValueError, RecursionError) as error:
        return UnreadableEntry(raw, to_one_line(str(error)))
    # Earlier versions kept the login in these addresses.
    bare = {"source": remove_login(entry.source), "index": remove_login(entry.index)}
    return msgspec.structs.replace(entry, **bare)


def remove_login(address: str) -> str:
    """Remove the name, the password and the token from an address, since addresses are kept, printed and passed on."""
    return _SSH_PASSWORD.sub(r"\1@", _QUERY.sub(_remove_secrets, _WEB_CREDENTIALS.sub(r"\1", address)))


def _remove_secrets(found: re.Match[str]) -> str:
    """Return the address without query parameters that are named like passwords, tokens or signatures."""
    said = re.split("[&;]", found[2])
    kept = "&".join(one for one in said if not SECRET_NAME.search(unquote(one.partition("=")[0])))
    return found[0] if len(kept) == len(found[2]) else f"{found[1]}?{kept}" if kept else found[1]


def _is_same_place(one: Path, other: Path) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def list_missing_grants(manifest: Manifest, grants: HookGrants) -> Iterator[str]:
    """Yield, in words, the rights that the manifest wants beyond the granted rights."""
    called = (("schedule", manifest.schedule), ("webhook", manifest.webhook))
    own = {f"{kind}:{manifest.folder}" for kind, said in called if said}
    env = (*manifest.env, *((manifest.secret_env,) if manifest.secret_env else ()))
    for key, said, agreed in (
        ("events", tuple(name for name in manifest.events if name not in own), grants.events),
        ("intercepts", manifest.intercepts, grants.intercepts),
        ("uses", manifest.uses, grants.uses),
        ("env", env, grants.env),
        ("schedule", (manifest.schedule,) if manifest.schedule else (), (grants.schedule or "",)),
        ("url", (manifest.url,) if manifest.url else (), (grants.url,)),
        ("on_error", ("deny",) if manifest.on_error == "deny" else (), (grants.on_error,)),
    ):
        if more := [to_one_line(one, len(one)) for one in said if one not in agreed]:
            yield f"{key}: {', '.join(more)}"
    for key, paths, within in (("reads", manifest.reads, grants.reads), ("writes", manifest.writes, grants.writes)):
        if more := [to_one_line(path, len(path)) for path in paths if not _is_within(path, within)]:
            yield f"{key}: {', '.join(more)}"
    if manifest.webhook and manifest.webhook != grants.webhook:
        yield f"webhook: {manifest.webhook.verify} with {manifest.webhook.secret_env}"
    if not _is_net_within(manifest.net, grants.net):
        yield f"net: {describe_network(manifest.net)}"


def _is_within(path: str, agreed: tuple[str, ...]) -> bool:
    """Tell whether the path, with all links followed, is inside a granted path: a link may be newer than the grant."""
    real = Path(os.path.realpath(expand_path(path)))
    return any(real.is_relative_to(os.path.realpath(expand_path(one))) for one in agreed)


def _is_net_within(said: Net | None, agreed: Net | None) -> bool:
    if isinstance(said, tuple) and isinstance(agreed, tuple):
        return set(said) <= set(agreed)
    return agreed is True or not said
