"""The comparison of the configuration on disk with the configuration in effect.

The gateway reads the files only if their stamps have changed since the last check. It reads a file with new stamps and
the same content once, and reports nothing. Reports name settings and variables, but no values.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.config.reference import list_differences
from gateway.errors import ConfigError
from gateway.threads import run_in_thread

Stamps: TypeAlias = Mapping[Path, tuple[int, ...]]

MOST_NAMED = 5
CHANGED = "{file} has changed since it was read; to have it read again: hermes-gateway reload (not in force: {names})"
UNUSABLE = "{file} has changed since it was read, and cannot be used; to see why: hermes-gateway config check"


class DiskConfiguration:
    """The files on disk, which `read` reads. `stamps` are older than `loaded`, so that a later write is noticed."""

    def __init__(self, read: Callable[[], Configuration], home: Home, loaded: Configuration, stamps: Stamps) -> None:
        self._read = read
        self.home = home
        self.keep(loaded, stamps)

    def keep(self, loaded: Configuration, stamps: Stamps) -> None:
        """Note the configuration that is now in effect, and the stamps of its files."""
        self.loaded = loaded
        self._seen = self._stamped = stamps
        self._told = ""

    async def check(self) -> None:
        """Check the files on disk. Raises ConfigError if the gateway cannot use these files."""
        await run_in_thread(self._read)

    async def describe(self) -> str:
        """Describe how the files on disk differ from the configuration in effect; "" if nothing differs."""
        stamps = stamp_files(self.home)
        if stamps != self._seen:
            self._told = await run_in_thread(self._compare, stamps)
            self._seen = stamps
            if not self._told:
                self._stamped = stamps
        return self._told

    def _compare(self, stamps: Stamps) -> str:
        file = next((one for one in stamps if stamps[one] != self._stamped[one]), self.home.config)
        try:
            now = self._read()
        except ConfigError:
            return UNUSABLE.format(file=file)
        names = [
            *list_differences(self.loaded.settings, now.settings),
            *list_changed_variables(self.loaded.environ, now.environ),
        ]
        more = [f"and {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        return CHANGED.format(file=file, names=", ".join([*names[:MOST_NAMED], *more])) if names else ""


def list_changed_variables(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """List the environment variables whose values differ between `before` and `after`."""
    return sorted({name for name, _ in before.items() ^ after.items()})


def stamp_files(home: Home) -> Stamps:
    """Return the stamps of the configuration's files, which change with each write."""
    return {file: _stamp_file(file) for file in (home.config, home.env)}


def _stamp_file(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino
