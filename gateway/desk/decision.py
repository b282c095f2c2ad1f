"""The gateway's answer to an event of a program: never more than the program would do without us.

The answer is empty unless a hook or a person decides. `allow` is for what a person pressed, and for nothing else,
since a program takes it as leave to skip its own questions.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gateway.config.home import Home
from gateway.desk.ask import DENIED
from gateway.desk.call import DeskCall, DeskQuestion
from gateway.desk.history import CallDecisions, describe_event, describe_refusal
from gateway.desk.programs import Program, make_decision, make_permission_answer
from gateway.desk.questions import DeskAnswer, DeskQuestions
from gateway.desk.reports import list_reports
from gateway.desk.settings_file import has_ended_hooks, has_own_lines
from gateway.events import Event, Pause, Question
from gateway.events.outcomes import find_reply, find_retry
from gateway.hooks import HookRegistry

UNANSWERED = "No owner allowed this in time. Go on without it."
NOT_ALLOWED = "A hook of hermes-gateway did not allow this call."
CHANGED = "A hook of hermes-gateway changed this call. Make it again in this form: {call}"
GUARDED = "This call names the gateway, its home or the settings that connect the program to it."
LOST = (
    "hermes-gateway is connected in these settings, and its lines would have no effect: "
    "`hermes-gateway connect {program}` writes them again, `hermes-gateway disconnect {program}` takes them out"
)
OWN_WORDS = ("hermes-gateway", "desk/ask.py", "disableAllHooks", "hooksConfig", "features.hooks")
# The folder of a program's settings as such, or a file of settings in it.
SETTINGS = re.compile(r"\.(claude|codex|gemini)(/?(?![\w./-])|/(settings|hooks|config))")


class Answer(NamedTuple):
    """The exit code of the program's command, and its text. Empty: as if nothing were connected."""

    code: int = 0
    text: str = ""


def deny(reason: str) -> Answer:
    """Deny a call. All programs take this; Gemini CLI would read a text that is JSON, and run the tool."""
    return Answer(DENIED, f"hermes-gateway: {reason.strip() or NOT_ALLOWED}")


def refuse(program: Program, event: str, reason: str) -> Answer:
    """Deny a call. An event that only notifies gets no denial: some programs would go on without end."""
    if event == program.events.before:
        return deny(reason)
    return (
        Answer(0, make_permission_answer(is_allowed=False, reason=reason))
        if event == program.events.question
        else Answer()
    )


class Desk(msgspec.Struct, frozen=True):
    """Answers the events of all programs. `home` is the gateway's own."""

    questions: DeskQuestions
    registry: HookRegistry
    home: Home

    async def find_answer(self, call: DeskCall) -> Answer:
        events, event = call.program.events, call.given.hook_event_name
        if event == events.before:
            return await self._judge(call)
        if event == events.question:
            return await self._ask_for_program(call)
        if event == events.guard and self._is_disconnection(call):
            return Answer(0, json.dumps({"decision": "block", "reason": LOST.format(program=call.program.name)}))
        if event in events.ends:
            for report in list_reports(call):
                self.registry.scope(report.fields).emit(report.name)
            await self.questions.end(call)
            if self.questions.read_settings().record:
                await self.questions.history.add(call, *describe_event(call))
        return Answer()

    async def _judge(self, call: DeskCall) -> Answer:
        """Have the hooks decide about a call, and ask the owners what the hooks ask."""
        answers, decisions = dict[str, Any](), CallDecisions()
        asked = self._find_own_question(call)
        while asked or self.registry.scope({}).wants("tool:before"):
            if asked:
                answered = await self.questions.ask(DeskQuestion(call, asked))
                if answered.outcome != "done":
                    return self._refuse(call, answered)
                answers |= {one.id: "yes" for one in asked}
            try:
                fault = await self._find_fault(call, answers, decisions)
            except Pause as pause:
                asked = pause.questions
                continue
            if fault:
                await self.questions.history.add(call, *describe_refusal(call, decisions.made, fault))
                return deny(fault)
            break
        return Answer(0, make_decision("allow")) if answers and call.program.has_dialog else Answer()

    async def _find_fault(self, call: DeskCall, answers: dict[str, Any], decisions: CallDecisions) -> str:
        """Run the hooks, and return why the program must not make this call as it is; "" if it may."""
        view = self.registry.scope(call.facts, answers=answers, owed=decisions)
        for ours in call.resolve():
            event = await view.run("tool:before", **ours, impl=None, result=None)
            if fault := find_call_fault(call, ours, event):
                return fault
        return ""

    def _find_own_question(self, call: DeskCall) -> tuple[Question, ...]:
        """Return our question about a call by which the program could approve itself, or escape the questions."""
        why = GUARDED if self._is_guarded(call) else call.program.find_risk(call.given.tool_name, call.given.tool_input)
        return (Question("guard", why, "hermes-gateway", f"{call.id}/guard"),) if why else ()

    def _is_guarded(self, call: DeskCall) -> bool:
        written = json.dumps(call.given.tool_input, ensure_ascii=False)
        words = (*OWN_WORDS, *list_home_names(self.home.root), call.program.settings.variable)
        return any(word in written for word in words) or bool(SETTINGS.search(written))

    def _refuse(self, call: DeskCall, answered: DeskAnswer) -> Answer:
        if answered.outcome == "refused":
            return deny(answered.why)
        if answered.outcome == "late" and self.questions.read_settings().unanswered == "ask" and call.can_ask:
            return Answer(0, make_decision("ask", UNANSWERED))
        return deny(UNANSWERED)

    async def _ask_for_program(self, call: DeskCall) -> Answer:
        """Put the program's own question to the owners."""
        answered = await self.questions.ask(DeskQuestion(call))
        match answered.outcome:
            case "done":
                return Answer(0, make_permission_answer(is_allowed=True))
            case "refused":
                return Answer(0, make_permission_answer(is_allowed=False, reason=answered.why))
            case "late" if self.questions.read_settings().unanswered == "deny":
                return Answer(0, make_permission_answer(is_allowed=False, reason=UNANSWERED))
        return Answer()

    def _is_disconnection(self, call: DeskCall) -> bool:
        """Return True if our lines would have no effect after this change of the program's settings."""
        given, path = call.given, Path(call.given.file_path)
        if has_ended_hooks(path):
            return True
        settings = self.questions.read_settings()
        return given.source == "user_settings" and not has_own_lines(
            call.program, path, self.home.desk_socket, settings
        )


def list_home_names(home: Path) -> tuple[str, ...]:
    """Return how a call may name the home: by its path, from the person's folder, or by a hidden folder's name."""
    person = Path.home()
    below = (f"/{home.relative_to(person)}",) if home != person and home.is_relative_to(person) else ()
    return (str(home), *below, *((home.name,) if home.name.startswith(".") else ()))


def find_call_fault(call: DeskCall, ours: dict[str, Any], event: Event) -> str:
    """Return why the hooks did not let this call of ours pass as it is; "" if they did."""
    reply = find_reply(event.outcome, NOT_ALLOWED)
    if reply is not None:
        return reply or NOT_ALLOWED
    if retry := find_retry(event.outcome):
        return retry.message or NOT_ALLOWED
    if event.get("result") is not None:
        return str(event["result"]) or NOT_ALLOWED
    left = {"tool": event.get("tool"), "args": event.get("args")}
    if left == ours:
        return ""
    tool, args = call.program.tools.describe_call(str(left["tool"]), left["args"])
    return CHANGED.format(call=json.dumps({"tool": tool, "input": args}, ensure_ascii=False))
