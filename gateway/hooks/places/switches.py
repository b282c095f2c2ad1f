"""A small file with the decisions of people: which hooks are on or off, and which are trusted.

The journal holds the same decisions for all gateways that share it (`shared_switches.py`), and takes precedence. The
file is for commands that run without a gateway. The gateway never writes into a hook's folder, which belongs to the
user.
"""

import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gateway.files.folders import read_plain_file

SWITCHES_FILE = "hooks.json"

Read = TypeVar("Read")

log = logging.getLogger(__name__)


class HookDecisions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The decisions in the file.

    The keys of `enabled` are the names of hooks' stores; a placed hook's store has the name of the hook. The keys of
    `trusted` are folder names.
    """

    v: int = 1
    enabled: dict[str, bool] = {}
    trusted: dict[str, str] = {}  # the content hash that was trusted


class HookSwitches:
    """The decisions, in memory and on disk."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / SWITCHES_FILE
        self.decisions = _read_decisions(self._path)

    def is_enabled(self, name: str) -> bool | None:
        """Return the decision about this hook; None if no person has decided."""
        return self.decisions.enabled.get(name)

    def is_trusted(self, name: str, digest: str) -> bool:
        return self.find_trusted(name) == digest

    def find_trusted(self, name: str) -> str:
        """Return the hash of the trusted version; "" if no version was ever trusted."""
        return self.decisions.trusted.get(name, "")

    def enable(self, name: str, enabled: bool) -> None:
        self._write(enabled={**self.decisions.enabled, name: enabled})

    def trust(self, name: str, digest: str) -> None:
        self._write(trusted={**self.decisions.trusted, name: digest})

    def adopt(self, enabled: Mapping[str, bool], trusted: Mapping[str, str]) -> set[str]:
        """Adopt these decisions, which take precedence; return the names of the hooks whose decision changes."""
        kept = self.decisions
        changed = {name for name, one in enabled.items() if kept.enabled.get(name) != one}
        changed |= {name for name, one in trusted.items() if kept.trusted.get(name) != one}
        if changed:
            self.decisions = msgspec.structs.replace(
                kept, enabled={**kept.enabled, **enabled}, trusted={**kept.trusted, **trusted}
            )
            try:
                self._write()
            except OSError as error:  # the decision counts even so: the journal repeats it at the next start
                log.warning("%s cannot be written: %s", self._path, error)
        return changed

    def _write(self, **changes: Any) -> None:
        decisions = msgspec.structs.replace(self.decisions, **changes)
        write_atomically(self._path, msgspec.json.format(msgspec.json.encode(decisions)))
        self.decisions = decisions


def _read_decisions(path: Path) -> HookDecisions:
    try:
        return msgspec.json.decode(read_plain_file(path), type=HookDecisions)
    except FileNotFoundError:
        return HookDecisions()
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        # The file is not lost: it stays beside the file that the next decision writes.
        kept = path.with_suffix(".unreadable.json")
        log.error("%s cannot be read (%s): no hook counts as switched or trusted; it is kept as %s", path, error, kept)
        if path.exists():
            path.replace(kept)
        return HookDecisions()


def read_json(path: Path, wanted: type[Read], otherwise: Read) -> Read:
    """Read a file that can be made again; return `otherwise` if the file cannot be read."""
    try:
        return msgspec.json.decode(read_plain_file(path), type=wanted)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return otherwise


def remove_leftovers(path: Path) -> None:
    """Remove unfinished new files of this name whose writers were killed. No other process may be writing this file."""
    for left in path.parent.glob(f".{path.name}.*"):
        left.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Write the file so that either the old or the new file exists, whole and on the disk, for its owner alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
