"""The task that writes `state.db` for the hooks that read it, from the start of the first one.

It never writes a file of Hermes's own. It follows the journal, so forgotten words are gone here within a second. The
next start deletes a file of ours that no hook reads any more.
"""

import logging
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
import anyio.abc

from gateway.engine.interface import Engine, Record, Tail
from gateway.errors import EngineError
from gateway.events import Event
from gateway.hermes.state_file import LEFT_TO_THEM, StateFile, find_owner, make_mark, read_content
from gateway.hooks.places.hook_files import KEPT_FILES
from gateway.records import records, subjects
from gateway.threads import run_in_thread

StateMode: TypeAlias = Literal["auto", "on", "off"]

STATE_FILE = KEPT_FILES[0]
PAGE = 500
READ_INTERVAL = 0.1  # seconds in which changes are collected
RETRY_PAUSE = 1.0
LAST_WORDS = 2.0  # seconds that a hook waits at most until the file has the turn whose end it gets
FIRST_FOLD = 2.0  # seconds that a hook waits at most for earlier conversations

log = logging.getLogger(__name__)


class StateFollower:
    def __init__(self, path: Path, engine: Engine, mode: StateMode) -> None:
        self.is_theirs = False  # the file belongs to another program, or another program has written to ours
        self.is_shared = False  # it has written to ours, which is still the same: a user's program, and not Hermes
        self._engine = engine
        self._mode = mode
        self._file = StateFile(path)
        self._reached = 0  # a record up to here is in the file
        self._mark = ""  # of that one
        self._is_wanted = anyio.Event()
        self._has_read = anyio.Event()
        self._ended: deque[str] = deque(maxlen=PAGE)  # turns whose end is in the file
        self._one_at_a_time = anyio.Lock()

    async def keep_files(self, files: Collection[str]) -> None:
        """Prepare the file for a hook that is about to start, with as many records as a short wait allows."""
        if STATE_FILE not in files or self._mode == "off" or self._is_wanted.is_set():
            return
        try:
            with anyio.move_on_after(FIRST_FOLD):
                await self._read_on()
        except (EngineError, sqlite3.Error, OSError) as error:
            log.warning("%s cannot be kept now: %s", self._file.path, error)
        self._is_wanted.set()

    async def wait_for_files(self, files: Collection[str], event: Event) -> None:
        """Wait until the file has the session or the turn of this event, as in Hermes."""
        if STATE_FILE not in files or not self._is_wanted.is_set() or self.is_theirs:
            return
        with anyio.move_on_after(LAST_WORDS):
            while not await self._has(event):
                await self._has_read.wait()

    async def _has(self, event: Event) -> bool:
        if event.name == "agent:end":
            return str(event.get("turn_id") or "") in self._ended
        if event.name == "session:start":
            async with self._one_at_a_time:
                return await run_in_thread(self._file.has_session, str(event.get("session_id") or ""))
        return True

    async def run(
        self,
        settled: Callable[[], Awaitable[None]],
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Follow the journal until cancelled.

        `settled` waits until all hooks of the start have started.
        """
        task_status.started()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._remove_unread, settled)
                if self._mode != "on":
                    await self._is_wanted.wait()
                await self._follow()
        finally:
            with anyio.CancelScope(shield=True):
                await self._call(self._file.close)

    def is_foreign(self) -> bool:
        """Tell if the file is Hermes's own, or another program's."""
        if self.is_theirs or self._file.is_open or self._one_at_a_time.locked():
            return self.is_theirs and not self.is_shared
        return find_owner(self._file.path) == "theirs"

    def describe(self) -> str:
        """Describe the file for people, behind the name of a hook that reads it."""
        if self._mode == "off":
            return f"{STATE_FILE}: not written here (sessions.state_db: off)"
        if self.is_theirs and self.is_shared:
            return f"{STATE_FILE}: others have written to it since, so it is {LEFT_TO_THEM}"
        if self.is_foreign():
            return f"{STATE_FILE}: Hermes's own, or of another program; never written here"
        return f"{STATE_FILE}: written for it, from the journal"

    async def _remove_unread(self, settled: Callable[[], Awaitable[None]]) -> None:
        if self._mode == "auto":
            await settled()
        if self._mode != "on" and not self._is_wanted.is_set():
            await self._call(self._file.remove)

    async def _follow(self) -> None:
        changes = await self._engine.tail(subjects.TURN_SUBJECTS)
        while not self.is_theirs:
            try:
                await self._read_on()
                await self._call(self._file.clean)
            except (EngineError, sqlite3.Error, OSError) as error:
                log.warning("%s does not keep up now: %s", self._file.path, error)
                if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                    await self._call(self._file.remove)  # damaged: the next look makes another
                await anyio.sleep(RETRY_PAUSE)
                continue
            with anyio.move_on_after(RETRY_PAUSE if self._file.is_unclean else None):
                await self._wait_for_news(changes)
        await anyio.sleep_forever()

    async def _wait_for_news(self, changes: Tail) -> None:
        async for record in changes:
            if record.seq == 0 or record.seq > self._reached:
                await anyio.sleep(READ_INTERVAL)  # records that come meanwhile are read together
                return

    async def _read_on(self) -> None:
        async with self._one_at_a_time:
            await self._fold_news()

    async def _fold_news(self) -> None:
        while (after := await self._open()) is not None:
            page = await records.read_readable(self._engine, subjects.TURN_SUBJECTS, after, PAGE)
            if not page:
                return
            upto, mark = page[-1].seq, make_mark(page[-1])
            if await run_in_thread(self._file.fold, page, upto, mark):
                self._reached, self._mark = upto, mark
                self._tell_ends(page)
            else:
                await run_in_thread(self._file.close)  # another file, or rows of another program in ours

    def _tell_ends(self, page: Sequence[Record]) -> None:
        ends = (kept.turn_id for one in page if isinstance(kept := records.decode(one.data), records.TurnEnded))
        self._ended.extend(ends)
        self._has_read.set()
        self._has_read = anyio.Event()

    async def _open(self) -> int | None:
        """Open the file, and return how far it has the journal; None if it is not ours to write."""
        if not await run_in_thread(self._file.open):
            self.is_shared = (
                find_owner(self._file.path) == "ours" and await run_in_thread(read_content, self._file.path) == "shared"
            )
            self.is_theirs = True
            level = logging.WARNING if self._mark else logging.INFO  # another program has just written to ours
            log.log(level, "%s is not ours, or others have written to it: it is left to them", self._file.path)
            return None
        upto, mark = await run_in_thread(self._file.read_progress)
        if upto != self._reached:  # it differs from our last write: an older copy, or a file of another journal
            last = await self._engine.read(subjects.TURN_SUBJECTS, max(upto - 1, 0), 1)
            if [upto, mark] != [part for one in last for part in (one.seq, make_mark(one))]:
                await run_in_thread(self._file.remove)
                self._reached, self._mark = 0, ""
                return await self._open()
            self._reached, self._mark = upto, mark
        return upto

    async def _call(self, function: Callable[[], None]) -> None:
        """Run the function in a thread, one at a time, since it would block the loop."""
        async with self._one_at_a_time:
            await run_in_thread(function)
