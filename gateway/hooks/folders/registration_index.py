"""What hooks registered when they last ran, for those whose source does not show it: kept from one start to the next.

Who may register anything may be a guard, so that until it has run tools wait for it, and are denied while it cannot
run. Once it has, what it registered is known, as long as nothing has changed on which that may depend: the whole of its
folder, its options, what it reads of the environment, and its own packages.
"""

import hashlib
from pathlib import Path

import msgspec
from anyio import to_thread

from gateway.config.secrets import is_public_value
from gateway.errors import HookError
from gateway.hooks.folders.manifest import HookRegistrations, Manifest
from gateway.hooks.folders.services import HookEnvironment
from gateway.hooks.folders.sources import HookVersion
from gateway.hooks.folders.switches import read_json, write_atomically
from gateway.hooks.folders.trusted_copy import read_whole_folder

REGISTRATIONS_FILE = "registrations.json"
MAX_BYTES = 2 << 20  # of a folder that is hashed whenever it is looked at


class StoredRegistrations(msgspec.Struct, frozen=True):
    """`key`: under which circumstances a hook registered this."""

    key: str
    registered: HookRegistrations


class RegistrationIndex:
    def __init__(self, environment: HookEnvironment) -> None:
        self._path = environment.state / REGISTRATIONS_FILE
        self._environment = environment
        self._kept = read_json(self._path, dict[str, StoredRegistrations], {})

    def find(self, version: HookVersion) -> HookRegistrations | None:
        """What it will register, if that is known."""
        kept = self._kept.get(version.name)
        if kept is None or version.manifest is None or not version.manifest.unread:
            return None
        return kept.registered if kept.key == self._key_of(version, version.manifest) else None

    async def keep(self, version: HookVersion, manifest: Manifest) -> None:
        """`manifest`: of this version, with what it has registered. OSError when that cannot be written."""
        key = self._key_of(version, manifest)
        made = StoredRegistrations(key, HookRegistrations(manifest.events, manifest.intercepts, manifest.guards))
        if key and self._kept.get(version.name) != made:
            self._kept[version.name] = made
            data = msgspec.json.format(msgspec.json.encode(self._kept))
            await to_thread.run_sync(write_atomically, self._path, data)

    def _key_of(self, version: HookVersion, manifest: Manifest) -> str:
        """Nothing where it cannot be said; of what may be a secret it only counts whether it is there."""
        try:
            code = read_whole_folder(version.path, MAX_BYTES).digest if version.source.is_placed else version.digest
        except HookError:
            return ""
        environ = self._environment.environ
        set_ones = {name: environ[name] for name in manifest.env if environ.get(name)}
        read = {name: value if is_public_value(value) else "..." for name, value in set_ones.items()}
        packages = _list_packages(self._environment.packages_of(version.name))
        around = msgspec.json.encode((version.options, read, packages), order="sorted", enc_hook=repr)
        return hashlib.sha256(code.encode() + around).hexdigest()


def _list_packages(folder: Path) -> list[str]:
    """With their versions."""
    try:
        return sorted(path.name for path in folder.iterdir() if path.suffix == ".dist-info")
    except OSError:
        return []
