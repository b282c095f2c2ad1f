"""Whether a call may run: asked of a person where it must be, and looked at once more right before the tool acts.

A yes is one to a call, never to its id. Each question carries the calls that it lets run, with a digest of tool and
arguments, and the turn knows all that were put for it (`Ports.calls`). So when a call is about to run, what was asked
about it is compared with what it has become; hooks may have changed it since, and a process that died may have been
another one. The first row that fits decides:

    nothing was asked about it           the tool's own rule (`asks`): lasting approvals, else a question
    it was asked about as it is now      a question of the tool's own needs its yes; a hook has judged the answer itself
    it was asked about as another call   it is asked once more, as it is now
    and that twice already               refused, with the names of the hooks that changed it
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
TOO_LATE = "Nobody allowed {tool} to run in time. Go on without it."
CHANGED = "{tool} is not run: this call was changed after it was allowed, {by}."
# What stands for an answer that nobody gave.
UNSHOWN = "The question could not be shown whole, so the answer is no."
UNREACHABLE = "Nobody who may allow this can be reached."
LASTING = ("session", "always")
MOST_FORMS = 2  # so many times one call may be asked about, each time as another


class Refused(AgentError):
    """A person was asked and did not agree. The name is what hooks see as the error's `type`."""


def ask_for_approval(tool: str, *, again: bool = False) -> str:
    """The words by which a tool asks; what it is about to do stands below them, wherever they are shown."""
    return f"May I run {tool}?" + (
        " The call was changed after the last answer, so it is asked again." if again else ""
    )


def check_approval(ports: Ports, tool: Tool, call: AskedCall) -> bool:
    """Go on when this call may run as it is. Returns whether that took a yes, now or for longer.

    Raises:
        Pause: a person has to be asked first.
        Refused: a person did not allow it, or it is another one than was allowed.
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
    is_own = is_changed or question in ports.calls
    if not is_own and (not asks or ports.approvals.get(key) in LASTING or _was_allowed_in_0_1(ports, call, pattern)):
        return bool(forms) or asks
    if question not in ports.answers:
        prompt = ask_for_approval(call.tool, again=is_changed)
        raise Pause((Question(question, prompt, call.tool, question, can_last=True, calls=(call,), pattern=pattern),))
    _follow_answer(ports, call, ports.answers[question], key)
    return True


def _follow_answer(ports: Ports, call: AskedCall, answer: Any, key: str) -> None:
    """Follow an answer: anything that is not clearly a yes denies; None: no answer came in time."""
    if isinstance(answer, str) and answer.strip().lower() in LASTING:
        ports.approvals[key] = answer.strip().lower()
    elif not is_yes(answer):
        text = TOO_LATE if answer is None else answer if answer in (UNREACHABLE, UNSHOWN) else REFUSED
        raise Refused(text.format(tool=call.tool))


def _was_allowed_in_0_1(ports: Ports, call: AskedCall, pattern: str) -> bool:
    """A question of 0.1 stood for the call's id, and mostly named what would run: then its yes is one to this call."""
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
