"""Where hooks come from, and what stands there: the folders of all sources, and each looked at as it is now.

A folder of a later source stands in for one of the same name in an earlier one.
"""

import logging
from collections.abc import Sequence

from gateway.hermes.config_hooks import CONFIG_KINDS, find_config_hook, inspect_config_hook, list_config_hooks
from gateway.hooks.folders.inspection import Inspection, InspectionCache, inspect_manifest
from gateway.hooks.folders.readiness import Readiness, check_readiness
from gateway.hooks.folders.services import HookServices
from gateway.hooks.folders.sources import FoundHook, Source, find_hook_folder, list_hook_folders
from gateway.hooks.folders.switches import HookSwitches

MAX_READS = 3  # of a folder that changes while it is read

log = logging.getLogger("gateway.hooks")


class SourceSet:
    def __init__(self, sources: Sequence[Source], house: HookServices) -> None:
        self.sources = list(sources)
        self.switches = HookSwitches(house.surroundings.state)
        self._studies = InspectionCache(house.surroundings.state)
        self._house = house

    def folders(self) -> dict[str, FoundHook]:
        """By name, in the order of the sources and of their names."""
        found: dict[str, FoundHook] = {}
        for source in self.sources:
            for folder in list_config_hooks(source) if source.kind in CONFIG_KINDS else list_hook_folders(source):
                if folder.name in found:
                    there = found[folder.name].source.origin
                    log.info("%s: the folder in %s stands in for that in %s", folder.name, source.origin, there)
                found[folder.name] = folder
        return found

    def find(self, name: str) -> FoundHook | None:
        """The folder of this name; None when there is none. A name that is a path finds nothing."""
        if not name or "/" in name or "\0" in name or name in (".", ".."):
            return None
        return next((folder for source in reversed(self.sources) if (folder := _find_in(source, name))), None)

    def check_readiness(self, name: str) -> Readiness | None:
        """The folder as it is now; None when there is none."""
        folder, why = self.find(name), ""
        for _ in range(MAX_READS):
            if folder is None:
                return None
            try:
                return check_readiness(folder, self._study(folder), self._house, self.switches)
            except OSError as error:  # a file went while we read; the folder may have gone, or be written just now
                folder, why = self.find(name), str(error)
        return Readiness(folder, "broken", f"cannot be read: {why}") if folder else None

    def check_first(self, folder: FoundHook, is_whole: bool) -> Readiness | None:
        """The first look of many: unless `is_whole`, code is not read that has not been read before."""
        try:
            is_whole = is_whole or folder.source.kind in CONFIG_KINDS
            study = self._study(folder) if is_whole else self._studies.known(folder) or inspect_manifest(folder)
        except OSError:
            return None
        return check_readiness(folder, study, self._house, self.switches)

    def _study(self, folder: FoundHook) -> Inspection:
        return inspect_config_hook(folder) if folder.source.kind in CONFIG_KINDS else self._studies.of(folder)

    def save(self) -> None:
        """What was read need not be read again at the next start."""
        try:
            self._studies.save()
        except OSError as error:
            log.warning("the index of hooks cannot be kept, the next start takes longer: %s", error)


def _find_in(source: Source, name: str) -> FoundHook | None:
    return find_config_hook(source, name) if source.kind in CONFIG_KINDS else find_hook_folder(source, name)
