"""The approval of tool calls: a person approves them if necessary, and each call is checked again right before it acts.

An approval is for a call as it was shown, never for its id alone. Each question carries the calls that it lets run,
with a digest of tool and arguments, and the turn knows all that were put for it (`Ports.calls`). So before a call runs,
the approved call is compared with the present one; hooks may have changed it since, and the process may have restarted.
The first row that fits decides:

    no question is about this call          the tool's own rule (`asks`): lasting approvals, else a question
    a question is about its present form    the tool's own question needs approval; a hook judges its own answers
    a question is about another form        a new question, for the present form
    and that happened twice already         refused, with the names of the hooks that changed it
"""

import logging
from dataclasses import replace
from typing import Any

from gateway.agent.ports import Ports
from gateway.agent.tools import Tool
from gateway.errors import AgentError
from gateway.events import AskedCall, Pause, Question, is_yes

log = logging.getLogger(__name__)

REFUSED = "The person did not allow {tool} to run."
TOO_LATE = "No approver approved {tool} in time. Go on without it."
CHANGED = "{tool} is not run: this call was changed after it was allowed, {by}."
# The texts in place of an answer that did not come.
UNSHOWN = "The question could not be shown in full, so the answer is no."
UNREACHABLE = "No approver can be reached."
LASTING = ("session", "always")
MOST_FORMS = 2  # one call may have questions about so many forms


class Refused(AgentError):
    """The refusal of a person. The class name is the error's `type` for hooks."""


def ask_for_approval(tool: str, *, again: bool = False) -> str:
    """Return the tool's question; details of the call are shown below it, on any platform."""
    return f"May I run {tool}?" + (
        " The call was changed after the last answer, so please answer again." if again else ""
    )


def check_approval(ports: Ports, tool: Tool, call: AskedCall) -> bool:
    """Continue if this call may run as it is. Returns True if that took an approval, now or for longer.

    Raises:
        Pause: a person has to approve first.
        Refused: a person did not allow it, or it differs from the approved call.
    """
    forms = {one.digest: one for calls in ports.calls.values() for one in calls if one.call_id == call.call_id}
    question = f"{call.call_id}/{call.tool}/approve/{call.digest[:16]}"
    is_changed = bool(forms) and call.digest not in forms
    if is_changed:
        hooks = dict.fromkeys(hook for one in (*forms.values(), call) for hook in one.changed_by)
        call = replace(call, changed_by=tuple(hooks))
        if len(forms) >= MOST_FORMS:
            raise Refused(_describe_change(call))
    asks = tool.asks(call.args, ports.facts) if callable(tool.asks) else tool.asks
    pattern = tool.subject(call.args) if tool.subject else ""
    key = f"{call.tool}:{pattern}" if tool.subject else call.tool
    is_own, can_last, pattern = is_changed or question in ports.calls, pattern is not None, pattern or ""
    is_allowed = can_last and ports.approvals.get(key) in LASTING
    if not is_own and (not asks or is_allowed or _was_allowed_in_0_1(ports, call, pattern)):
        return bool(forms) or asks
    if question not in ports.answers:
        prompt = ask_for_approval(call.tool, again=is_changed)
        asked = Question(question, prompt, call.tool, question, can_last=can_last, calls=(call,), pattern=pattern)
        raise Pause((asked,))
    _follow_answer(ports, call, ports.answers[question], key)
    return True


def _follow_answer(ports: Ports, call: AskedCall, answer: Any, key: str) -> None:
    """Follow an answer: anything that is not clearly an approval denies; None: no answer came in time."""
    if isinstance(answer, str) and answer.strip().lower() in LASTING:
        ports.approvals[key] = answer.strip().lower()
    elif not is_yes(answer):
        text = TOO_LATE if answer is None else answer if answer in (UNREACHABLE, UNSHOWN) else REFUSED
        raise Refused(text.format(tool=call.tool))


def _was_allowed_in_0_1(ports: Ports, call: AskedCall, pattern: str) -> bool:
    """Return True if a question of 0.1 approved this call: it was for the call's id, and mostly named the command."""
    question = f"{call.call_id}/{call.tool}/approve"
    named = bool(pattern) and ports.asked.get(question) == f"May I run {call.tool}: {pattern}"
    if question in ports.answers and not is_yes(ports.answers[question]):
        raise Refused(REFUSED.format(tool=call.tool))
    return named and is_yes(ports.answers.get(question))


def _describe_change(call: AskedCall) -> str:
    by = f"by the hook {', '.join(call.changed_by)}" if call.changed_by else "and no hook did it"
    text = CHANGED.format(tool=call.tool, by=by)
    log.warning("%s", text)
    return text
