"""A call of a tool by a program on the desk: its event, what an owner sees of it, and the scope of an approval."""

import hashlib
import json
import re
import socket
from typing import Any

import msgspec

from gateway.config.settings import MAIN
from gateway.desk.programs import Program
from gateway.events import Question
from gateway.events.asked_calls import make_asked_call
from gateway.logs.signs import show_signs
from gateway.messages.message import LiteralText
from gateway.questions.proposals import DESK
from gateway.questions.text import show_call
from gateway.worker.json_decoder import JsonDecoder

LONGEST_ID = 100
# The fields that are the same in each call; an empty one is a field of each turn that no desk has something for.
CONSTANT_FACTS = {
    **dict.fromkeys(("account", "chat_name", "thread_id", "message_id"), ""),
    "platform": DESK,
    "role": "owner",
    "scope": "owner",
    "chat_type": "dm",
}


class ProgramEvent(msgspec.Struct, frozen=True):
    """The fields of a program's hook that count here; all programs of this family have the same ones."""

    hook_event_name: str
    session_id: str = ""
    cwd: str = ""
    tool_name: str = ""
    tool_input: dict[str, Any] = {}
    tool_response: Any = None
    error: Any = None
    prompt: Any = None
    last_assistant_message: Any = None
    prompt_response: Any = None
    source: str = ""  # of a change of settings
    file_path: str = ""
    prompt_id: str = ""
    turn_id: str = ""

    @property
    def turn(self) -> str:
        """The program's id of the turn; Claude Code and Codex have different names for it, Gemini CLI has none."""
        return self.prompt_id or self.turn_id


decode_event = JsonDecoder[ProgramEvent](ProgramEvent).decode


class DeskCall(msgspec.Struct, frozen=True):
    """An event of a program. `asker` is the process that waits for the answer; `person` owns the machine.

    `began`: the start of that process by a clock of its host; 0: unknown.
    """

    program: Program
    given: ProgramEvent
    asker: str
    person: str
    is_attended: bool
    began: int = 0

    @property
    def digest(self) -> str:
        """The checksum over program, session, folder, tool and the whole input."""
        given = self.given
        told = [self.program.name, given.session_id, given.cwd, given.tool_name, given.tool_input]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    @property
    def id(self) -> str:
        """The id of the call: the process that asked once has it again, and no other process has."""
        return hashlib.sha256(f"{self.digest} {self.asker}".encode()).hexdigest()[:12]

    @property
    def author(self) -> str:
        """The author of its words, as in `gateway.messages.authors`."""
        return f"{DESK}:{self.person}"

    @property
    def session_key(self) -> str:
        """The key of its session's history; the program's own id of the session may have any form."""
        session = re.sub(r"[^\w-]", "_", self.given.session_id)[:LONGEST_ID]
        return f"agent:{MAIN}:{DESK}:dm:{self.program.name}:{self.person}:{session}"

    @property
    def facts(self) -> dict[str, Any]:
        """The fields of all events about it."""
        given = self.given
        own = {"program": self.program.name, "tool": given.tool_name, "args": given.tool_input, "folder": given.cwd}
        return {
            **CONSTANT_FACTS,
            "user_id": self.person,
            "user_name": self.person,
            "person": self.author,
            "chat_id": given.cwd,
            "session_id": given.session_id,
            "session_key": self.session_key,
            "agent": self.program.name,
            "turn_id": self.id,
            "call_id": self.id,
            "hop": 0,
            "desk": own,
        }

    @property
    def is_start(self) -> bool:
        """True for the begin of a turn."""
        return self.given.hook_event_name == self.program.events.start

    @property
    def can_ask(self) -> bool:
        """True if the program's own dialog appears, and a person sits there."""
        return self.is_attended and self.program.has_dialog

    def resolve(self) -> list[dict[str, Any]]:
        """Return the tool and its arguments under our names; several, if the call is several calls of ours."""
        name, given = self.given.tool_name, self.given.tool_input
        calls = self.program.split(name, given) or [self.program.tools.resolve_call(name, given)]
        return [{"tool": tool, "args": args} for tool, args in calls]

    def is_ended_by(self, later: "DeskCall") -> bool:
        """Return True if this later event shows that this call needs no answer any more.

        Programs send some events in the background, so an event may come after the call that followed it, and
        its command may begin after that of the call. The begin of a turn comes before all calls of this turn.
        """
        if later.began < self.began:
            return False
        if (later.program, later.given.session_id) != (self.program, self.given.session_id):
            return False
        if later.is_start and self.given.turn and later.given.turn == self.given.turn:
            return False
        return later.given.tool_name == "" or later.digest == self.digest


class DeskQuestion(msgspec.Struct, frozen=True):
    """A question about a call: the program's own, or those of hooks (`asked`), which one answer settles."""

    call: DeskCall
    asked: tuple[Question, ...] = ()

    @property
    def id(self) -> str:
        told = "\0".join([self.call.id, *(one.id for one in self.asked)])
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    def show(self) -> tuple[LiteralText, ...]:
        """Return the whole call as an owner's chat shows it, and the words of the hooks."""
        call, given = self.call, self.call.given
        return (
            LiteralText(f"{call.program.title} asks, before it runs a tool:", show_signs(given.tool_name)),
            *show_call(make_asked_call("", given.tool_name, given.tool_input)),
            LiteralText("In the folder:", show_signs(f"{given.cwd} ({socket.gethostname()})")),
            *(LiteralText("Asked by the hook:", show_signs(f"{one.hook}: {one.prompt}")) for one in self.asked),
        )
