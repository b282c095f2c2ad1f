"""Where hooks come from, and what stands there: the folders of all sources, and each looked at as it is now.

A folder of a later source stands in for one of the same name in an earlier one.
"""

import logging
from collections.abc import Sequence

from gateway.hooks.folders.assessment import Assessment, assess
from gateway.hooks.folders.configured import KINDS, configured_in, find_configured, study_configured
from gateway.hooks.folders.discovery import Folder, Source, hooks_in, look
from gateway.hooks.folders.house import House
from gateway.hooks.folders.study import Studies, Study, survey
from gateway.hooks.folders.switches import Switches

READINGS = 3  # of a folder that changes while it is read

log = logging.getLogger("gateway.hooks")


class Places:
    def __init__(self, sources: Sequence[Source], house: House) -> None:
        self.sources = list(sources)
        self.switches = Switches(house.surroundings.state)
        self._studies = Studies(house.surroundings.state)
        self._house = house

    def folders(self) -> dict[str, Folder]:
        """By name, in the order of the sources and of their names."""
        found: dict[str, Folder] = {}
        for source in self.sources:
            for folder in configured_in(source) if source.kind in KINDS else hooks_in(source):
                if folder.name in found:
                    there = found[folder.name].source.origin
                    log.info("%s: the folder in %s stands in for that in %s", folder.name, source.origin, there)
                found[folder.name] = folder
        return found

    def find(self, name: str) -> Folder | None:
        """The folder of this name; None when there is none. A name that is a path finds nothing."""
        if not name or "/" in name or "\0" in name or name in (".", ".."):
            return None
        return next((folder for source in reversed(self.sources) if (folder := _look(source, name))), None)

    def assess(self, name: str) -> Assessment | None:
        """The folder as it is now; None when there is none."""
        folder, why = self.find(name), ""
        for _ in range(READINGS):
            if folder is None:
                return None
            try:
                return assess(folder, self._study(folder), self._house, self.switches)
            except OSError as error:  # a file went while we read; the folder may have gone, or be written just now
                folder, why = self.find(name), str(error)
        return Assessment(folder, "broken", f"cannot be read: {why}") if folder else None

    def survey(self, folder: Folder, is_whole: bool) -> Assessment | None:
        """The first look of many: unless `is_whole`, code is not read that has not been read before."""
        try:
            is_whole = is_whole or folder.source.kind in KINDS
            study = self._study(folder) if is_whole else self._studies.known(folder) or survey(folder)
        except OSError:
            return None
        return assess(folder, study, self._house, self.switches)

    def _study(self, folder: Folder) -> Study:
        return study_configured(folder) if folder.source.kind in KINDS else self._studies.of(folder)

    def save(self) -> None:
        """What was read need not be read again at the next start."""
        try:
            self._studies.save()
        except OSError as error:
            log.warning("the index of hooks cannot be kept, the next start takes longer: %s", error)


def _look(source: Source, name: str) -> Folder | None:
    return find_configured(source, name) if source.kind in KINDS else look(source, name)
