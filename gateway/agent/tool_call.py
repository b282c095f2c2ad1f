"""One tool call: decided by the interceptors, checked, approved, written down, run, and judged by the interceptors.

No error leaves it: an unknown tool, bad arguments, a refusal and a failure are results for the model, which can do
better then. Only a pause, a cancellation and a journal that refuses to write go through.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import msgspec

from gateway.agent.tools import Tool, ToolContext, check_args, find_tool
from gateway.agent.turn_state import (
    RETRIES,
    Fields,
    Operation,
    OperationResult,
    TurnState,
    run_operation,
    wait_before_retry,
)
from gateway.errors import AgentError
from gateway.events import Deny, End, Pause, Question, is_yes
from gateway.steps import ToolFinished, ToolStarted
from gateway.transcript import Entry, ToolCall

log = logging.getLogger(__name__)

UNKNOWN_OUTCOME = (
    "This call was started before the gateway was interrupted, and its outcome is unknown: "
    "it may or may not have taken effect. Check before you do it again."
)
STOPPED_TEXT = "The person stopped this before it was finished; it may have taken effect."
ENDED_TEXT = "Not run: the turn was ended."


class ApprovalDenied(AgentError):
    """A person was asked and did not agree."""


@dataclass(slots=True)
class PendingToolCall:
    """A call on its way: what the model asked for, and what became of it."""

    asked: ToolCall
    tools: tuple[Tool, ...]
    duration: float | None = None
    message: str = ""  # what a Retry of a hook wants the model to be told
    denied: str = ""
    name: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    ran: Entry | None = None  # what came of it, before the interceptors have seen it


async def call_tool(run: TurnState, asked: ToolCall, tools: tuple[Tool, ...]) -> tuple[Entry, str]:
    """The result of the call for the model, recorded; and what a hook's Retry wants to tell it besides."""
    call = PendingToolCall(asked, tools)
    for attempt in range(RETRIES + 1):
        call.name, call.args, call.denied, call.duration = asked.name, dict(asked.args), "", None
        call.ran = None
        done = await _run_and_keep_result(run, call)
        if done.retry is None or run.finish is not None:
            break
        if attempt == RETRIES:
            log.warning("tool:after asked for %s again %d times; the last result is taken", asked.name, RETRIES)
            break
        call.message = done.retry.message or call.message
        await wait_before_retry(done.retry)
    run.end(done.outcome, "tool:before", "Stopped by hook.")
    run.end(done.verdict, "tool:after", "Stopped by hook.")
    entry = _entry_of(call, done)
    await run.record(ToolFinished(turn_id=run.ports.turn_id, call_id=asked.id, entry=entry))
    return entry, call.message


async def _run_and_keep_result(run: TurnState, call: PendingToolCall) -> OperationResult:
    """The call between its events. When a person must be asked about its result, it is kept, and not run again."""
    try:
        return await run_operation(run, _operation(run, call))
    except Pause:
        if call.ran:
            step = ToolFinished(turn_id=run.ports.turn_id, call_id=call.asked.id, entry=call.ran, judged=False)
            await run.record(step)
        raise


def make_failed_result(asked: ToolCall, text: str) -> Entry:
    """The result of a call that was not done."""
    return Entry("tool", text, call_id=asked.id, name=asked.name, error=True)


def _operation(run: TurnState, call: PendingToolCall) -> Operation:
    tool = find_tool(call.tools, call.name)

    def ask() -> dict[str, Any]:
        fields = {"tool": call.name, "args": call.args, "impl": tool, "result": None}
        return fields | {"call_id": call.asked.id, "hop": run.hop}

    async def act(event: Fields | None) -> Any:
        if run.finish is not None:
            raise AgentError(ENDED_TEXT)
        chosen = tool
        if event is not None:
            call.name, call.args = str(event.get("tool")), event.get("args") or {}
            impl = event.get("impl")
            chosen = impl if impl is not tool else find_tool(call.tools, call.name)
        return await _run_or_recall(run, call, chosen)

    def tell(done: OperationResult) -> dict[str, Any]:
        call.denied = _denial_text_of(done)
        fields: dict[str, Any] = {"tool": call.name, "args": call.args, "result": done.value, "duration": call.duration}
        fields |= {"denied": call.denied or None, "call_id": call.asked.id, "hop": run.hop}
        return fields | ({"stop": done.left} if done.left else {})

    return Operation("tool:before", "tool:after", ask, act, tell)


async def _run_or_recall(run: TurnState, call: PendingToolCall, chosen: Any) -> Any:
    """What the tool gives; what it gave in an earlier life of the turn, if that is all that is known of it."""
    if known := run.replay.unjudged.pop(call.asked.id, None):
        call.ran = known.entry
        if known.entry.error:
            raise AgentError(known.entry.content)
        return known.entry.content
    try:
        value = await _run_tool(run, call, _resolve_tool(call, chosen))
    except Exception as error:
        call.ran = make_failed_result(call.asked, str(error) or type(error).__name__)
        raise
    call.ran = Entry("tool", as_text(value), call_id=call.asked.id, name=call.asked.name)
    return value


def _denial_text_of(done: OperationResult) -> str:
    if isinstance(done.outcome, Deny):
        return done.outcome.text or "A hook did not allow this call."
    if isinstance(done.outcome, End):
        return ENDED_TEXT
    return str(done.error) if isinstance(done.error, ApprovalDenied) else ""


def _resolve_tool(call: PendingToolCall, chosen: Any) -> Tool:
    if isinstance(chosen, Tool):
        return chosen
    if callable(chosen):
        return Tool(call.name, "", {}, _as_tool(chosen))
    names = sorted(tool.name for tool in call.tools)
    near = get_close_matches(call.name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names) or 'none'}"
    raise AgentError(f"there is no tool {call.name!r}{hint}")


def _as_tool(function: Callable[..., Any]) -> Callable[[dict[str, Any], ToolContext], Awaitable[Any]]:
    async def call(args: dict[str, Any], context: ToolContext) -> Any:
        value = function(args, context)
        return await value if isinstance(value, Awaitable) else value

    return call


async def _run_tool(run: TurnState, call: PendingToolCall, tool: Tool) -> Any:
    args = check_args(tool, call.args)
    turn_id, call_id = run.ports.turn_id, call.asked.id
    before = run.replay.started.pop(call_id, None)  # told once, the model may decide to call it again
    if before is not None and not (tool.repeatable or before.repeatable):
        raise AgentError(UNKNOWN_OUTCOME)
    if tool.asks(args) if callable(tool.asks) else tool.asks:
        _check_approval(run, call, tool, args)
    started = ToolStarted(turn_id=turn_id, call_id=call_id, name=tool.name, args=args, repeatable=tool.repeatable)
    await run.record(started)
    ports = run.ports
    bags = (ports.turn, ports.session, ports.facts)
    context = ToolContext(call_id, run.agent.name, *bags, _make_ask(run, call), ports.chat)
    began = time.perf_counter()
    try:
        return await tool.call(args, context)
    except Pause:  # who asks has not acted yet, and starts again with the answer
        await run.record(msgspec.structs.replace(started, repeatable=True))
        raise
    finally:
        call.duration = time.perf_counter() - began


def _check_approval(run: TurnState, call: PendingToolCall, tool: Tool, args: dict[str, Any]) -> None:
    """Go on when a person agreed: now, for this session, or for ever. Whatever is not clearly a yes refuses."""
    subject = tool.subject(args) if tool.subject else ""
    keys = (tool.name, f"{tool.name}:{subject}")
    if any(run.ports.approvals.get(key) in ("session", "always") for key in keys):
        return
    answer = _make_ask(run, call, can_last=True)(f"May I run {tool.name}: {subject or _shorten(args)}", "approve")
    if isinstance(answer, str) and answer.strip().lower() in ("session", "always"):
        run.ports.approvals[keys[1] if subject else keys[0]] = answer.strip().lower()
        return
    if not is_yes(answer):
        raise ApprovalDenied(f"The person did not allow {tool.name} to run.")


def _make_ask(run: TurnState, call: PendingToolCall, can_last: bool = False) -> Callable[[str, str], Any]:
    def ask(prompt: str, name: str) -> Any:
        key = f"{call.asked.id}/{call.name}/{name}"
        if key in run.ports.answers:
            return run.ports.answers[key]  # None: nobody answered in time
        raise Pause((Question(key, prompt, call.name, key, can_last),))

    return ask


def _shorten(args: dict[str, Any]) -> str:
    text = as_text(args)
    return text if len(text) <= 300 else text[:300] + "..."


def _entry_of(call: PendingToolCall, done: OperationResult) -> Entry:
    """What the model is told: a result that a hook left, the denial, or the error in words."""
    result = done.after.get("result") if done.after is not None else done.value
    denied = _denial_text_of(done)
    text = as_text(result) if result is not None else denied
    if done.error is not None and result is None:
        text = denied or str(done.error) or type(done.error).__name__
    unhandled = done.error is not None or bool(denied and result is None)
    return Entry("tool", text, call_id=call.asked.id, name=call.asked.name, error=unhandled)


def as_text(value: Any) -> str:
    """A tool's value as the model reads it: text as it is, everything else as JSON, or at least as words."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except TypeError:
        return str(value)
