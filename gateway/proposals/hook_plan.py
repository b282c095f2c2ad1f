"""The plan to install a hook from an index, or to update it: what it is granted is exactly what was shown."""

import hashlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

from gateway.config.home import Home, get_process_environment
from gateway.errors import HookError
from gateway.hooks.manifests.installed import InstalledHook, list_missing_grants
from gateway.hooks.places.dialect import Dialect
from gateway.installer.fetched_hook import FetchedHook, describe_request, fetch_hook
from gateway.installer.indexes import IndexReader, find_listed, is_listed_name, is_own_index, make_listed_source
from gateway.installer.lock_file import InstalledChange, change_installed, open_workspace, read_installed
from gateway.installer.manifest_changes import list_missing_guards
from gateway.messages.message import LiteralText
from gateway.threads import run_in_thread


class HookPlan:
    """The installation of a hook that an index lists; one from elsewhere is installed at the terminal alone."""

    kind = "hook"

    def __init__(
        self, home: Home, name: str, dialects: tuple[Dialect, ...], reload: Callable[[str], Awaitable[object]]
    ) -> None:
        if not is_listed_name(name):
            raise HookError(
                f"{name[:60]!r} is not a name in an index\nothers are installed at the terminal: hooks install"
            )
        self.name = name
        self._home, self._dialects, self._reload = home, dialects, reload
        self._digest = b""

    def make_digest(self) -> bytes:
        return self._digest

    async def look(self) -> tuple[LiteralText, ...]:
        return await run_in_thread(self._look)

    async def apply(self) -> str:
        version = await run_in_thread(self._install)
        await self._reload(self.name)
        return f"{self.name} {version} is installed"

    def _look(self) -> tuple[LiteralText, ...]:
        with open_workspace(self._home) as work:
            before, found = self._fetch(work)
            if before and (before.digest, before.packages) == (found.digest, found.packages):
                raise HookError(f"{self.name} is installed as it is there")
            shown = tuple(self._describe(before, found))
            self._digest = _make_digest(shown, found)
            return shown

    def _install(self) -> str:
        """Install it if an owner would be shown the same now: the content, its index, and the installed version."""
        with open_workspace(self._home) as work:
            before, found = self._fetch(work)
            if _make_digest(tuple(self._describe(before, found)), found) != self._digest:
                raise HookError(f"{self.name} is another one there now than what was shown; nothing was installed")
            change_installed(self._home, InstalledChange(hooks=[found]), work)
            return found.own_version

    def _fetch(self, work: Path) -> tuple[InstalledHook | None, FetchedHook]:
        """Fetch the hook that the index lists, and return it with the installed one.

        Raises:
            HookError: no index lists it, it is not what is listed, or one from elsewhere is installed.
        """
        environ, before = get_process_environment(), read_installed(self._home).get(self.name)
        known, entry, _ = find_listed(IndexReader(self._home, environ), "hook", self.name, work)
        found = replace(
            fetch_hook(make_listed_source(known, entry), work, environ, self._dialects), index=known.address
        )
        if (found.name, found.digest) != (self.name, entry.digest):
            raise HookError(f"{self.name}: the content of {found.source} is not the one that {known.address} names")
        is_own = before and is_own_index(self._home, before.index) and is_own_index(self._home, found.index)
        if before and not is_own and before.index != found.index:
            raise HookError(f"{self.name} is installed, from {before.index or before.source}\nremove that one first")
        return before, found

    def _describe(self, before: InstalledHook | None, found: FetchedHook) -> Iterator[LiteralText]:
        yield LiteralText("Update a hook:" if before else "Install a hook:", f"{self.name} {found.own_version}".strip())
        yield LiteralText("Listed by:", found.index)
        if found.manifest.description:
            yield LiteralText("It says of itself:", found.manifest.description[:300])
        asked = describe_request(self.name, found.manifest, found.packages)
        yield LiteralText("It may:", "\n".join(f"{label}: {text}" for label, text in asked if text))
        if before:
            more = [*list_missing_grants(found.manifest, before.grants)]
            folder = self._home.own_folder / before.path
            less = [*list_missing_guards(folder, found.manifest, before.grants.intercepts)]
            yield LiteralText("It asks for more than the installed one:", "\n".join(more) or "no")
            yield LiteralText("It guards less than the installed one:", "\n".join(less) or "no")
        yield LiteralText("Its content:", found.digest)


def _make_digest(shown: tuple[LiteralText, ...], found: FetchedHook) -> bytes:
    """Return a checksum over what is shown, which names the content, and over its packages with their own checksums."""
    return hashlib.sha256(repr((shown, found.packages)).encode()).digest()
