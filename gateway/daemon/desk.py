"""The desk socket: programs of this machine ask here before they run a tool. The first caller loads `gateway/desk`.

Programs on other machines ask at the port, with a key.
"""

import logging
from http import HTTPStatus
from typing import Any

import anyio
import anyio.abc

from gateway.control.listener import CallerListener
from gateway.daemon.desk_programs import DeskPrograms
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.turns import Turns
from gateway.late_imports import load_modules
from gateway.threads import run_in_thread
from gateway.web.http_request import HttpRequest, HttpResponse
from gateway.web.key_check import KeyCheck
from gateway.web.request_body import WebRefusal

ROOM, PORT = "gateway.desk.room", "gateway.desk.port"
WANTS_KEY = "an API key with the role desk is required: hermes-gateway keys new NAME --as desk"

log = logging.getLogger(__name__)


class DeskSocket:
    """Serves the socket; its callers are processes of our own user, who alone may enter its folder."""

    def __init__(self, base: Base, storage: Storage, people: People, turns: Turns) -> None:
        self._base, self._storage, self._people, self._turns = base, storage, people, turns
        self._desk: Any = None
        self._programs = DeskPrograms(base.home.desk_programs)
        self.find_program = self._programs.find

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
                await room.answer_caller(self._find_desk(room), stream, self._programs.add)
        except* (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            log.debug("a caller left the desk socket in the middle of an answer")
        except* Exception:  # one caller's fault: the others stay connected
            log.exception("desk: a connection failed")

    async def answer_request(self, check: KeyCheck, request: HttpRequest, peer: str) -> HttpResponse:
        """Answer a program on another machine. Raises WebRefusal."""
        key = check.find(request, peer)
        if key is None:
            raise WebRefusal(HTTPStatus.UNAUTHORIZED, WANTS_KEY, WWW_Authenticate="Bearer")
        if key.role != "desk":
            raise WebRefusal(HTTPStatus.FORBIDDEN, WANTS_KEY)
        room, port = await run_in_thread(load_modules, ROOM, PORT)
        response: HttpResponse = await port.answer_request(self._find_desk(room), self._people.keys, key, request)
        return response

    def _find_desk(self, room: Any) -> Any:
        """Return the one desk of all callers."""
        self._desk = self._desk or self._build(room)
        return self._desk

    def _build(self, room: Any) -> Any:
        base, turns = self._base, self._turns
        parts, proposals = (base.engine, turns.outbox, self._storage.activity, base.tasks), turns.proposals
        people = proposals.list_owners, proposals.describe_person
        history = room.DeskHistory(self._storage.sessions)
        questions = room.DeskQuestions(*parts, *people, lambda: base.settings.desk, proposals.node, history)
        return room.Desk(questions, base.registry, base.home)
