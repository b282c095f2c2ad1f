"""Hooks that change their own code: each load could cause the next change, without end.

A file does not say who wrote it, so the gateway judges by the time and the number of changes. A change is the hook's
own if files change during more than five loads in a row, or right after more than twenty loads in a row. Then the
gateway leaves the folder alone for a while, each time for longer. An editor that saves automatically may look the same:
so the first pause is short, and a change at any other moment ends the pauses.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.backoff import Backoff
from gateway.hooks.places.sources import HookVersion

MOST_WHILE_LOADED, MOST_SOON_AFTER = 5, 20  # loads in a row whose change is followed at once
SOON = 0.3  # seconds after a load
LATEST_NOTICE = 2.0  # seconds after which a change is noticed at the latest, whatever the file system's clock says
RESTS = Backoff(1.0, 30.0)


class OwnChanges:
    """The judge of one folder's changes, by the loads before the changes; failed and cancelled loads count, too."""

    def __init__(self) -> None:
        self._version: HookVersion | None = None  # the version that is being loaded, or was loaded last
        self._ended_at = 0.0
        self._is_counted = False  # a file has changed while the version was loaded, or soon after
        self._while_loaded = self._soon_after = 0  # loads in a row

    @contextmanager
    def loading(self, version: HookVersion) -> Iterator[None]:
        """Note, within the context, that this version is being loaded."""
        self._version, self._ended_at, self._is_counted = version, math.inf, False
        try:
            yield
        finally:
            self._ended_at = time.time()

    def find_rest(self, version: HookVersion) -> float:
        """Return the seconds to leave the folder alone after this change; 0 if the hook did not make the change."""
        before = self._version
        if before is None or not version.is_ready or version.digest == before.digest:
            return 0.0
        late = _find_change_time(before, version) - self._ended_at
        if late > SOON:
            self._while_loaded = self._soon_after = 0
        elif not self._is_counted:
            self._is_counted = True
            self._soon_after += 1
            self._while_loaded = self._while_loaded + 1 if late <= 0 else 0
        return RESTS.pause_after(max(self._while_loaded - MOST_WHILE_LOADED, self._soon_after - MOST_SOON_AFTER))

    def describe(self) -> str:
        """Say why the folder is left alone."""
        when = "as" if self._while_loaded > MOST_WHILE_LOADED else "right after"
        return f"it changes its own code {when} it is loaded"


def _find_change_time(before: HookVersion, after: HookVersion) -> float:
    """Return the time at which one version became the other; the current time if the files do not show it."""
    now = time.time()
    changed = max((file.changed / 1e9 for file in {*after.files} - {*before.files}), default=now)
    return min(now, max(now - LATEST_NOTICE, changed))
