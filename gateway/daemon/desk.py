"""The desk socket: programs of this machine ask here before they run a tool. The first caller loads the room."""

import logging
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.abc

from gateway.control.listener import CallerListener
from gateway.daemon.groups.process import Base
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.turns import Turns
from gateway.late_imports import load_modules
from gateway.threads import run_in_thread
from gateway.worker.process_tree import read_process

ROOM = "gateway.desk.room"

log = logging.getLogger(__name__)


class DeskSocket:
    """Serves the socket; its callers are processes of our own user, who alone may enter its folder."""

    def __init__(self, base: Base, storage: Storage, turns: Turns) -> None:
        self._base, self._storage, self._turns = base, storage, turns
        self._desk: Any = None
        self.programs: dict[tuple[int, int], str] = {}  # those that asked, by their processes and when these began

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        path = self._base.home.desk_socket
        path.unlink(missing_ok=True)  # left by a process that died: the holder of the home's lock owns the name
        try:
            async with await anyio.create_unix_listener(path, mode=0o600) as accepting:
                task_status.started()
                await CallerListener(accepting, lambda _why: b"").serve(self._converse)
        finally:
            path.unlink(missing_ok=True)

    async def _converse(self, stream: anyio.abc.SocketStream) -> None:
        try:
            async with stream:
                [room] = await run_in_thread(load_modules, ROOM)
                self._desk = self._desk or self._build(room)
                await room.answer_caller(self._desk, stream, self.programs)
        except* (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            log.debug("a caller left the desk socket in the middle of an answer")
        except* Exception:  # one caller's fault: the others stay connected
            log.exception("desk: a connection failed")

    def _build(self, room: Any) -> Any:
        base, turns = self._base, self._turns
        parts, proposals = (base.engine, turns.outbox, self._storage.activity, base.tasks), turns.proposals
        people = proposals.list_owners, proposals.describe_person
        questions = room.DeskQuestions(*parts, *people, lambda: base.settings.desk)
        return room.Desk(questions, base.registry, base.home)

    def find_program(self, ancestors: Sequence[int]) -> str:
        """Return the connected program that started these processes; "" if no connected program did."""
        found = (read_process(pid) for pid in ancestors) if self.programs else ()
        return next((name for one in found if one and (name := self.programs.get((one.pid, one.started)))), "")
