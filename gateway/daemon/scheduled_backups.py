"""Automatic copies of the home, as often as `backup.every` says. The folder of copies shows the time of the last copy.

A separate process makes each copy. `trouble` keeps the reason for a failure until a copy succeeds; the next try comes
within ten minutes.
"""

import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import msgspec

import gateway
from gateway.backoff import find_pause
from gateway.backup.backup_folder import list_own
from gateway.backup.shared_journal import PASSWORD, USER, JournalServers
from gateway.config.home import Home
from gateway.config.node_settings import BackupSettings
from gateway.logs.text import to_one_line

LOOK_PAUSE = 5.0  # seconds; the clock and the settings may change
RETRY_PAUSE = 600.0
LIBRARY = str(Path(gateway.__file__).resolve().parents[1])

log = logging.getLogger(__name__)


class ScheduledBackups(msgspec.Struct, eq=False):
    """Copies the home when a copy is due, and keeps the reason for the last failure."""

    _home: Home
    _settings: Callable[[], BackupSettings]
    _servers: JournalServers | None = None
    _clock: Callable[[], float] = time.time
    _retry_at: float = 0.0
    trouble: str = ""

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Make copies until cancelled."""
        task_status.started()
        while True:
            settings = self._settings()
            if settings.every and self._clock() >= self._find_due(settings):
                await self._make(settings)
            if not settings.every:
                self.trouble = ""
            await anyio.sleep(find_pause(min(LOOK_PAUSE, settings.every or LOOK_PAUSE)))

    def describe(self) -> dict[str, Any]:
        """Describe for `status` how often copies are made, how many are kept, and the last copy (time 0: no copy)."""
        settings, own = self._settings(), list_own(self._home.backups)
        last, path = own[-1] if own else (0.0, None)
        said = {"every": settings.every, "keep": settings.keep, "kept": len(own)}
        return {**said, "last": last, "file": str(path or ""), "trouble": self.trouble}

    def _find_due(self, settings: BackupSettings) -> float:
        """Find when the next copy is due: at once if the last copy is from the future, since the clock was set back."""
        now, own = self._clock(), list_own(self._home.backups)
        last = own[-1][0] if own else 0.0
        return max(last + settings.every if last <= now else 0.0, min(self._retry_at, now + RETRY_PAUSE))

    async def _make(self, settings: BackupSettings) -> None:
        servers = self._servers or JournalServers("")
        told = json.dumps({"home": str(self._home.root), "keep": settings.keep, "servers": servers.url})
        environ = {"PYTHONPATH": LIBRARY, USER: servers.user, PASSWORD: servers.password}
        command = [sys.executable, "-P", "-m", "gateway.backup", told]
        try:
            done = await anyio.run_process(command, check=False, env=environ, stdin=subprocess.DEVNULL, cwd="/")
        except OSError as error:  # the system has no process or descriptor left for now
            self._fail(settings, f"no process could be made: {error.strerror}")
            return
        if done.returncode == 0:
            made, self.trouble = json.loads(done.stdout), ""
            log.info("a backup was made: %s, %d bytes", made["file"], made["size"])
            return
        why = to_one_line(done.stderr.decode(errors="replace").strip(), 500) or f"it ended with {done.returncode}"
        self._fail(settings, why)

    def _fail(self, settings: BackupSettings, why: str) -> None:
        self.trouble, self._retry_at = why, self._clock() + min(RETRY_PAUSE, settings.every)
        log.warning("no backup was made: %s", why)
