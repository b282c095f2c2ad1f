"""The gateway's answer to an event of a program: never more than the program would do without us.

The answer is empty unless a hook or a person decides. `allow` is for what a person pressed, and for nothing else,
since a program takes it as leave to skip its own questions.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gateway.desk.call import DeskCall, DeskQuestion
from gateway.desk.programs import make_decision, make_permission_answer
from gateway.desk.questions import DeskAnswer, DeskQuestions
from gateway.desk.settings_file import has_own_line
from gateway.events import Event, Pause, Question
from gateway.events.outcomes import find_reply, find_retry
from gateway.hooks import HookRegistry

DENIED = 2  # the exit code that each program takes as a denial, with the reason on the standard error
REFUSED = "An owner refused this in a chat. Go on without it, or ask them."
UNANSWERED = "No owner allowed this in time. Go on without it."
NOT_ALLOWED = "A hook of hermes-gateway did not allow this call."
CHANGED = "A hook of hermes-gateway changed this call. Make it again in this form: {call}"
GUARDED = "This call names the gateway, its home or the settings that connect the program to it."
LOST = "hermes-gateway is connected in these settings; `hermes-gateway disconnect {program}` takes it out"
OWN_WORDS = ("hermes-gateway", "desk/ask.py")


class Answer(NamedTuple):
    """The exit code of the program's command, and its text. Empty: as if nothing were connected."""

    code: int = 0
    text: str = ""


class Desk(msgspec.Struct, frozen=True):
    """Answers the events of all programs. `home` is the gateway's own."""

    questions: DeskQuestions
    registry: HookRegistry
    home: Path

    async def find_answer(self, call: DeskCall) -> Answer:
        program, event = call.program, call.given.hook_event_name
        if event == program.before:
            return await self._judge(call)
        if event == program.question:
            return await self._ask_for_program(call)
        if event == program.guard and is_disconnection(call):
            return Answer(0, json.dumps({"decision": "block", "reason": LOST.format(program=program.name)}))
        if event == program.after:
            self._emit_after(call)
        if event in program.ends:
            await self.questions.end(call)
        return Answer()

    async def _judge(self, call: DeskCall) -> Answer:
        """Have the hooks decide about a call, and ask the owners what the hooks ask."""
        answers: dict[str, Any] = {}
        asked = self._find_own_question(call)
        while asked or self.registry.scope({}).wants("tool:before"):
            if asked:
                answered = await self.questions.ask(DeskQuestion(call, asked))
                if answered.outcome != "done":
                    return self._refuse(call, answered)
                answers |= {one.id: "yes" for one in asked}
            try:
                event = await self._run_hooks(call, answers)
            except Pause as pause:
                asked = pause.questions
                continue
            if denial := find_call_fault(call, event):
                return Answer(DENIED, denial)
            break
        return Answer(0, make_decision("allow")) if answers else Answer()

    async def _run_hooks(self, call: DeskCall, answers: dict[str, Any]) -> Event:
        view = self.registry.scope(call.facts, answers=answers)
        return await view.run("tool:before", **call.resolve(), impl=None, result=None)

    def _find_own_question(self, call: DeskCall) -> tuple[Question, ...]:
        """Return our question about a call by which the program could approve itself."""
        words = (*OWN_WORDS, str(self.home), f"{call.program.folder}/{call.program.file}")
        written = json.dumps(call.given.tool_input, ensure_ascii=False)
        if not any(word in written for word in words):
            return ()
        return (Question("guard", GUARDED, "hermes-gateway", f"{call.id}/guard"),)

    def _refuse(self, call: DeskCall, answered: DeskAnswer) -> Answer:
        if answered.outcome == "refused":
            return Answer(DENIED, REFUSED)
        if answered.outcome == "late" and self.questions.read_settings().unanswered == "ask" and call.can_ask:
            return Answer(0, make_decision("ask", UNANSWERED))
        return Answer(DENIED, UNANSWERED)

    async def _ask_for_program(self, call: DeskCall) -> Answer:
        """Put the program's own question to the owners."""
        answered = await self.questions.ask(DeskQuestion(call))
        match answered.outcome:
            case "done":
                return Answer(0, make_permission_answer(is_allowed=True))
            case "refused":
                return Answer(0, make_permission_answer(is_allowed=False, reason=REFUSED))
            case "late" if self.questions.read_settings().unanswered == "deny":
                return Answer(0, make_permission_answer(is_allowed=False, reason=UNANSWERED))
        return Answer()

    def _emit_after(self, call: DeskCall) -> None:
        view, given = self.registry.scope(call.facts), call.given
        view.emit("tool:after", **call.resolve(), result=given.tool_response, parts=[], error=None, denied=None)


def is_disconnection(call: DeskCall) -> bool:
    """Return True if this change of the program's own settings would take our lines out."""
    given = call.given
    return given.source == "user_settings" and not has_own_line(call.program, Path(given.file_path))


def find_call_fault(call: DeskCall, event: Event) -> str:
    """Return why the program must not make this call as it is; "" if it may."""
    reply = find_reply(event.outcome, NOT_ALLOWED)
    if reply is not None:
        return reply or NOT_ALLOWED
    if retry := find_retry(event.outcome):
        return retry.message or NOT_ALLOWED
    if event.get("result") is not None:
        return str(event["result"])
    left = {"tool": event.get("tool"), "args": event.get("args")}
    if left == call.resolve():
        return ""
    tool, args = call.program.tools.describe_call(str(left["tool"]), left["args"])
    return CHANGED.format(call=json.dumps({"tool": tool, "input": args}, ensure_ascii=False))
