"""The history of a program's session, beside the conversations: the questions, and who answered what.

By default, a call is kept only if it was a question, or was denied. With `desk.record` the history also has the
prompts, the results of all tools and the answers, as the program's own events have them.
"""

import json
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from gateway.desk.call import DeskCall, DeskQuestion, ProgramEvent
from gateway.errors import Conflict, EngineError
from gateway.hooks.recorder import HookDecision, OwedEvents
from gateway.messages.transcript import Entry, ToolCall
from gateway.questions.proposals import DESK
from gateway.records import records
from gateway.sessions.keys import make_session_id
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import Session
from gateway.sessions.transitions import change_title

LONGEST = 50_000  # characters of a text, or of a call's arguments

log = logging.getLogger(__name__)


class CallDecisions(OwedEvents):
    """The decisions of hooks alone: the events are part of no turn, whose appends they could wait for."""

    __slots__ = ("made",)

    def __init__(self) -> None:
        super().__init__()
        self.is_over = True
        self.made: list[HookDecision] = []

    def add_decision(self, decision: HookDecision) -> None:
        self.made.append(decision)


class DeskHistory(msgspec.Struct, frozen=True):
    """Writes the histories. The program gets its answer, whether the journal can be written or not."""

    sessions: SessionRepository

    async def add(self, call: DeskCall, *entries: Entry) -> None:
        """Add these entries to the session of the call; its first ones begin it."""
        try:
            while entries and not await self._try_to_add(call, entries):
                log.debug("%s has changed, and is read again", call.session_key)
        except EngineError as error:
            log.warning("desk: %s has no history of this call: %s", call.session_key, error)

    async def _try_to_add(self, call: DeskCall, entries: Sequence[Entry]) -> bool:
        session = await self.sessions.open(call.session_key)
        opened = () if session.session_id else (begin_session(session, call, self.sessions.now()),)
        ended = records.TurnEnded(upto=session.upto, entries=tuple(entries), people=(call.author,))
        try:
            await self.sessions.append(session, *opened, ended)
        except Conflict:
            return False
        return True


def begin_session(session: Session, call: DeskCall, now: float) -> records.SessionOpened:
    title = change_title(f"{call.program.title} in {call.given.cwd}")
    return records.SessionOpened(
        session_id=make_session_id(now),
        session_key=session.key,
        platform=DESK,
        user_id=call.person,
        carried=records.InitialState(settings={title.name: title.value}),
    )


def describe_answer(question: DeskQuestion, answer: str, *, is_allowed: bool) -> tuple[Entry, Entry]:
    """Describe a question and its end."""
    hooks = [f"The hook {one.hook} asks: {one.prompt}" for one in question.asked]
    asks = "\n".join(hooks) or f"{question.call.program.title} asks."
    return describe_call(question.call, answer, asks, is_failed=not is_allowed)


def describe_refusal(call: DeskCall, decisions: Sequence[HookDecision], reason: str) -> tuple[Entry, Entry]:
    """Describe a call that hooks denied, or changed."""
    hooks = dict.fromkeys(one.hook for one in decisions if one.decision != "ask")
    return describe_call(call, f"Denied by {', '.join(hooks) or 'a hook'}: {reason}", is_failed=True)


def describe_event(call: DeskCall) -> tuple[Entry, ...]:
    """Describe what the program reports: a prompt, a tool's result, or an answer."""
    given = call.given
    if given.tool_name:
        is_failed = given.hook_event_name != call.program.events.after
        return describe_call(call, write_text(given.error if is_failed else given.tool_response), is_failed=is_failed)
    for role, text in (("assistant", find_answer(given)), ("user", given.prompt)):
        if isinstance(text, str) and text:
            return (Entry(role, cut(text)),)  # type: ignore[arg-type]
    return ()


def find_answer(given: ProgramEvent) -> Any:
    return given.last_assistant_message or given.prompt_response


def describe_call(call: DeskCall, result: str, said: str = "", *, is_failed: bool) -> tuple[Entry, Entry]:
    name, args = call.given.tool_name, call.given.tool_input
    written = json.dumps(args, ensure_ascii=False)
    kept = args if len(written) <= LONGEST else {"cut": cut(written)}
    asked = Entry("assistant", cut(said), (ToolCall(call.id, name, kept),))
    return asked, Entry("tool", cut(result), call_id=call.id, name=name, error=is_failed)


def write_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cut(text: str) -> str:
    left = len(text) - LONGEST
    return f"{text[:LONGEST]}… ({left} more characters)" if left > 0 else text
