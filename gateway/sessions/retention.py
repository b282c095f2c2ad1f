"""Retention: remove sessions that were last used long ago, and compact the records of long sessions.

Only finished work is removed. A session whose turn is open, or that waits for an answer, stays; waiting messages are
not touched. Traffic (inbound messages, replies, events) expires by the time of each record. Files of messages expire at
the same age, and so do unreadable updates. One gateway maintains a shared journal, and each gateway the files in its
own home.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import anyio
import anyio.abc
import msgspec

from gateway.config.node_settings import JournalSettings
from gateway.engine.interface import Engine
from gateway.errors import EngineError, SessionError
from gateway.files.folders import RECEIVED_NAME
from gateway.records import records, subjects
from gateway.sessions.removal import compact_chain, forget_sessions
from gateway.sessions.repository import SessionRepository
from gateway.sessions.search import SessionInfo, SessionSearch
from gateway.threads import run_in_thread
from gateway.yaml_source.units import format_count

log = logging.getLogger(__name__)

PAUSE = 600.0
YOUNGEST = records.EVENT_TTL  # a session must be silent for so long: then the network repeats no message any more
FORGET_BATCH = 50  # sessions that are forgotten before the next check of the journal's size
LONG_CHAIN = 5000  # records
MAX_COMPACT_WEIGHT = 8_000_000  # characters that one append can rewrite
FULL_SHARE, TARGET_SHARE = 0.9, 0.8  # of the limit: removal begins at the first share, and ends at the second
KEY_OF = attrgetter("session_key")


class Retention(msgspec.Struct, eq=False):
    """Removes records to keep the journal within its limits. `trouble` describes for an operator why this fails."""

    _engine: Engine
    _sessions: SessionRepository
    _search: SessionSearch
    limits: Callable[[], JournalSettings]
    _clock: Callable[[], float]
    trouble: str = ""

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Remove until cancelled. If the journal fails, try again later: the journal reports the failure itself."""
        task_status.started()
        while True:
            try:
                await self.run_once()
            except EngineError as error:
                log.info("the journal is not tended now: %s", error)
            await anyio.sleep(PAUSE)

    async def run_once(self) -> int:
        """Remove and compact sessions once. Return the number of forgotten sessions."""
        if self._engine.clock.is_held:
            return 0  # the host's clock was set: for a day no record counts as old
        limits = self.limits()
        gone = await self._forget_old(limits)
        for session in self._sessions.known():
            if session.records >= LONG_CHAIN and session.weight < MAX_COMPACT_WEIGHT:
                await self._compact(session.key)
        return gone + await self._forget_over_size(limits)

    async def _forget_old(self, limits: JournalSettings) -> int:
        gone = 0
        while limits.retention and (some := await self._forget_silent(max(limits.retention, YOUNGEST))):
            gone += some
        if gone:
            idle = format_count(round(limits.retention / records.DAY), "day")
            log.info("removed after %s without use: %s", idle, format_count(gone, "session"))
        return gone

    async def _forget_over_size(self, limits: JournalSettings) -> int:
        size = (await self._engine.health()).size
        self.trouble = ""
        if not limits.max_size or size < FULL_SHARE * limits.max_size:
            return 0
        gone, before = 0, size
        while size > TARGET_SHARE * limits.max_size and (some := await self._forget_silent(YOUNGEST)):
            gone += some
            size = (await self._engine.health()).size
        if gone:
            sessions = format_count(gone, "session")
            log.warning("forgotten, the oldest first: %s; the journal had %d bytes", sessions, before)
        if size >= FULL_SHARE * limits.max_size:
            self.trouble = (
                f"the journal has {size} bytes, its limit is {limits.max_size}, and nothing in it is old enough to go: "
                "raise journal.max_size, or forget sessions with: hermes-gateway sessions delete"
            )
        return gone

    async def _forget_silent(self, age: float) -> int:
        """Forget up to FORGET_BATCH sessions, longest silent first. Return how many were forgotten."""
        rows = sorted(await self._search.list_silent(self._clock() - age, FORGET_BATCH), key=KEY_OF)
        return sum([await self._forget(key, list(found)) for key, found in groupby(rows, KEY_OF)])

    async def _forget(self, key: str, rows: list[SessionInfo]) -> int:
        try:
            gone = await forget_sessions(self._engine, self._sessions, key, *(row.session_id for row in rows))
        except SessionError:  # a turn is running
            return 0
        return len(rows) * gone

    async def _compact(self, key: str) -> None:
        chain = await self._engine.read(subjects.session_subject_of("turn", key), 0, LONG_CHAIN)
        if len(chain) == LONG_CHAIN and await compact_chain(self._engine, self._sessions, key):
            log.info("the chain of %s was rewritten, without the steps of turns that have ended", key)


class FileRetention(msgspec.Struct, eq=False):
    """Removes the files of messages, and unreadable updates, at the age at which messages expire."""

    _engine: Engine
    _folders: Sequence[Path]
    _clock: Callable[[], float]

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Remove until cancelled."""
        task_status.started()
        while True:
            await self.run_once()
            await anyio.sleep(PAUSE)

    async def run_once(self) -> None:
        """Remove old files of messages once."""
        if self._engine.clock.is_held:
            return  # the host's clock was set: for a day no file counts as old
        for folder in self._folders:
            await run_in_thread(_remove_old_files, folder, self._clock() - records.TRAFFIC_TTL)


def _remove_old_files(folder: Path, before: float) -> None:
    """Remove received files. The agent's files in the folder of a conversation stay."""
    in_folders = (path for path in folder.glob("*/*/*") if RECEIVED_NAME.fullmatch(path.name))
    for path in (*folder.glob("*"), *folder.glob("*/*"), *in_folders):
        with suppress(OSError):  # another process was faster, or the file is not ours: the next round tries again
            if path.is_symlink():
                if not path.exists():  # the target of the link is gone
                    path.unlink()
            elif path.is_file() and path.stat().st_mtime < before:
                path.unlink()
