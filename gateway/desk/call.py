"""A call of a tool by a program on the desk: its event, what an owner sees of it, and the scope of an approval."""

import hashlib
import json
import socket
from typing import Any

import msgspec

from gateway.desk.programs import Program
from gateway.events.asked_calls import make_asked_call
from gateway.logs.signs import show_signs
from gateway.messages.message import LiteralText
from gateway.questions.text import show_call
from gateway.worker.json_decoder import JsonDecoder


class ProgramEvent(msgspec.Struct, frozen=True):
    """The fields of a program's hook that count here; all programs of this family have the same ones."""

    hook_event_name: str
    session_id: str = ""
    cwd: str = ""
    tool_name: str = ""
    tool_input: dict[str, Any] = {}


decode_event = JsonDecoder[ProgramEvent](ProgramEvent).decode


class DeskCall(msgspec.Struct, frozen=True):
    """An event of a program. `asker` names the process that waits for the answer."""

    program: Program
    given: ProgramEvent
    asker: str

    @property
    def digest(self) -> str:
        """The checksum over program, session, folder, tool and the whole input."""
        given = self.given
        told = [self.program.name, given.session_id, given.cwd, given.tool_name, given.tool_input]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    @property
    def id(self) -> str:
        """The id of its question: the process that asked once finds it again, and no other process does."""
        return hashlib.sha256(f"{self.digest} {self.asker}".encode()).hexdigest()[:12]

    def show(self) -> tuple[LiteralText, ...]:
        """Return the whole call as an owner's chat shows it."""
        given, machine = self.given, socket.gethostname()
        return (
            LiteralText(f"{self.program.title} asks, before it runs a tool:", show_signs(given.tool_name)),
            *show_call(make_asked_call("", given.tool_name, given.tool_input)),
            LiteralText("In the folder:", show_signs(f"{given.cwd} ({machine})")),
        )

    def is_ended_by(self, later: "DeskCall") -> bool:
        """Return True if this later event shows that this call needs no answer any more."""
        if (later.program, later.given.session_id) != (self.program, self.given.session_id):
            return False
        return later.given.tool_name == "" or later.digest == self.digest
