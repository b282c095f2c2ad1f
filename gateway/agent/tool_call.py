"""One tool call: decided by the interceptors, checked, approved, written down, run, and judged by the interceptors.

No error leaves it: an unknown tool, bad arguments, a refusal and a failure are results for the model, which can do
better then. Only a pause, a cancellation and a journal that refuses to write go through.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import Any

import anyio
import msgspec

from gateway.agent.batch_gate import BatchGate
from gateway.agent.operation import Operation, OperationResult, run_operation
from gateway.agent.ports import KeepPicture, Ports
from gateway.agent.tool_approval import Refused, check_approval
from gateway.agent.tools import AskPerson, Tool, ToolContext, check_args, find_tool
from gateway.agent.turn_state import Fields, StepNotRecorded, TurnState
from gateway.errors import AgentError
from gateway.events import AskedCall, Pause, Question, Retry
from gateway.events.asked_calls import make_asked_call
from gateway.events.outcomes import find_end, find_refusal
from gateway.messages.steps import ToolFinished, ToolStarted
from gateway.messages.transcript import Entry, Picture, ToolCall
from gateway.turn_marks import keep_mark

UNKNOWN_OUTCOME = (
    "This call was started before the gateway was interrupted, and its outcome is unknown: "
    "it may or may not have taken effect. Check before you do it again."
)
SUSPECT_TEXT = (
    "The gateway ended while this call ran, perhaps because of what came back: it is not done again. "
    "Go on without it, or say so to the person."
)
STOPPED_TEXT = "The person stopped this before it was finished; it may have taken effect."
ENDED_TEXT = "Not run: the turn was ended."
NOT_FOR_HOOKS = (
    "{tool} is not run: the restricted hook {hooks} had a say in this call, which so has the rights of a user. "
    "Tell the person; `access.tools` in config.yaml says which tools users have."
)
WITHHELD_TEXT = "This call was made; what it gave is withheld. "


@dataclass(slots=True)
class ToolCallRun(Operation[Entry]):
    """One call of a tool: the model's request, and its state in the present try."""

    asked: ToolCall
    tools: tuple[Tool, ...]
    gate: BatchGate
    name: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    tool: Tool | None = None  # the one of that name, if there is one
    duration: float | None = None
    own_result: Entry | None = None  # what the tool itself gave, before the interceptors have seen it
    message: str = ""  # of a hook's Retry, for the model
    parts: tuple[Picture, ...] = ()  # the pictures that the tool gave
    before = "tool:before"
    after = "tool:after"

    def begin(self) -> None:
        self.name, self.args = self.asked.name, dict(self.asked.args)
        self.tool = find_tool(self.tools, self.name)
        self.duration = self.own_result = None
        self.parts = ()

    def before_fields(self) -> dict[str, Any]:
        fields = {"tool": self.name, "args": self.args, "impl": self.tool, "result": None}
        return fields | {"call_id": self.asked.id, "hop": self.state.hop}

    async def act(self, event: Fields | None) -> Any:
        state = self.state
        if state.ending.finish is not None:  # another call of the batch ended the turn meanwhile
            raise AgentError(ENDED_TEXT)
        chosen: Any = self.tool
        if event is not None:
            self.name, self.args = str(event.get("tool")), event.get("args") or {}
            impl = event.get("impl")
            chosen = impl if impl is not self.tool else find_tool(self.tools, self.name)
        # An earlier try of the turn ran the tool and paused at `tool:after`: only the interceptors run again.
        if known := state.replay.unjudged.pop(self.asked.id, None):
            self.own_result, self.parts = known.entry, known.entry.parts
            if known.entry.error:
                raise AgentError(known.entry.content)
            return known.entry.content
        try:
            value = await _run_tool(self, _resolve_tool(self, chosen))
        except Exception as error:
            self.own_result = make_result(self.asked, str(error) or type(error).__name__, error=True)
            raise
        self.own_result = make_result(self.asked, as_text(value), parts=self.parts)
        return value

    def after_fields(self, result: OperationResult) -> dict[str, Any]:
        fields = {"tool": self.name, "args": self.args, "result": result.value, "duration": self.duration}
        fields["parts"] = [asdict(part) for part in self.parts]
        fields |= {"denied": _denial_text_of(result) or None, "call_id": self.asked.id, "hop": self.state.hop}
        return fields | ({"stop": result.exit_reason} if result.exit_reason else {})

    async def prepare_retry(self, retry: Retry) -> None:
        self.message = retry.message or self.message

    def conclude(self, result: OperationResult) -> Entry:
        """Return the result for the model: the one that a hook left, the denial, or the error in words."""
        self.state.end(result.outcome, self.before, "Stopped by hook.")
        self.state.end(result.after_outcome, self.after, "Stopped by hook.")
        left = result.left("result")
        if denied := _denial_text_of(result):
            self.state.results.denials[self.asked.id] = "person" if result.error else "hook"
        if (refusal := find_refusal(result.after_outcome)) is not None and not denied:
            return make_result(self.asked, f"{WITHHELD_TEXT}{refusal}".strip(), error=True)
        if left is not None:
            parts = self._parts_of(result)
            return make_result(self.asked, as_text(left), error=result.error is not None, parts=parts)
        if result.error is None:
            return make_result(self.asked, denied, error=bool(denied))
        return make_result(self.asked, denied or str(result.error) or type(result.error).__name__, error=True)

    def _parts_of(self, result: OperationResult) -> tuple[Picture, ...]:
        """Return the tool's pictures that the interceptors left."""
        left = result.left("parts") if result.after_event is not None else None
        return tuple(part for part in self.parts if asdict(part) in left) if isinstance(left, list) else self.parts


async def call_tool(state: TurnState, asked: ToolCall, tools: tuple[Tool, ...], gate: BatchGate) -> tuple[Entry, str]:
    """Return the recorded result of the call for the model, and the message of a hook's Retry for it."""
    call = ToolCallRun(state, asked, tools, gate)
    try:
        entry = await run_operation(call)
    except Pause:
        if call.own_result:  # a person decides about the result: it is kept, and the tool is not run again
            step = ToolFinished(turn_id=state.ports.turn_id, call_id=asked.id, entry=call.own_result, judged=False)
            await state.record(step)
        raise
    await state.record(ToolFinished(turn_id=state.ports.turn_id, call_id=asked.id, entry=entry))
    return entry, call.message


def make_result(asked: ToolCall, text: str, error: bool = False, parts: tuple[Picture, ...] = ()) -> Entry:
    """Make the result of a call, or with `error` the reason why it was not done."""
    return Entry("tool", text, call_id=asked.id, name=asked.name, error=error, parts=parts)


def _denial_text_of(result: OperationResult) -> str:
    if (refusal := find_refusal(result.outcome, "A hook did not allow this call.")) is not None:
        return refusal
    if find_end(result.outcome):
        return ENDED_TEXT
    return str(result.error) if isinstance(result.error, Refused) else ""


def _resolve_tool(call: ToolCallRun, chosen: Any) -> Tool:
    if isinstance(chosen, Tool):
        return chosen
    if callable(chosen):
        return Tool(call.name, "", {}, _as_tool(chosen))
    if call.name in call.state.results.withheld:
        raise AgentError(f"{call.name} is not given to the person you work for; `access.tools` in config.yaml gives it")
    names = sorted(tool.name for tool in call.tools)
    near = get_close_matches(call.name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names) or 'none'}"
    raise AgentError(f"tool {call.name!r} not found{hint}")


def _as_tool(function: Callable[..., Any]) -> Callable[[dict[str, Any], ToolContext], Awaitable[Any]]:
    async def call(args: dict[str, Any], context: ToolContext) -> Any:
        value = function(args, context)
        return await value if isinstance(value, Awaitable) else value

    return call


async def _run_tool(call: ToolCallRun, tool: Tool) -> Any:
    state = call.state
    turn_id, call_id = state.ports.turn_id, call.asked.id
    ports, chosen = state.ports.for_call(call_id), tool
    if ports is not state.ports:
        tool = _limit_tool(ports, call_id, chosen)
    args = deepcopy(check_args(tool, call.args))  # a hook in code may have kept the very arguments that it was shown
    before = state.replay.started.pop(call_id, None)  # said once: after that the model may call it again
    is_harmless = tool.repeatable and not tool.suspect
    if before is not None and not (is_harmless or before.repeatable):
        raise AgentError(SUSPECT_TEXT if tool.suspect else UNKNOWN_OUTCOME)
    if tool.bind and ports.chat:
        args = tool.bind(args, ports.chat)
    about = _describe_call(call, chosen, args)
    if tool.asks:
        await ports.load_approvals()
    needed_yes = check_approval(ports, tool, about)
    if tool.changes != "nothing":
        await call.gate.pass_through(call_id, needed_yes=needed_yes)
    # Written before it acts: after a crash in the tool, the next try of the turn knows that it may have run.
    started = ToolStarted(turn_id=turn_id, call_id=call_id, name=tool.name, args=args, repeatable=is_harmless)
    await state.record(started)
    bags = (ports.turn, ports.session, ports.facts)
    answers = _list_answers(call)
    show = partial(_show_picture, call, ports.keep_picture) if ports.keep_picture else None
    context = ToolContext(call_id, state.agent.name, *bags, _make_ask(call, about), ports.chat, answers, show)
    began = time.perf_counter()
    try:
        with keep_mark(changes_files=tool.may_change_files):
            return await tool.call(args, context)
    except Pause:  # who asks has not acted yet, and starts again with the answer
        await state.record(msgspec.structs.replace(started, repeatable=True))
        raise
    except anyio.get_cancelled_exc_class():  # an orderly end is not the doing of what ran
        if tool.suspect and tool.repeatable:
            with anyio.CancelScope(shield=True), suppress(StepNotRecorded):
                await state.record(msgspec.structs.replace(started, repeatable=True))
        raise
    finally:
        call.duration = time.perf_counter() - began


def _limit_tool(ports: Ports, call_id: str, tool: Tool) -> Tool:
    """Return the tool as the user may use it. Raises AgentError if they may not."""
    if limited := ports.grant(tool) if ports.grant else tool:
        return limited
    hooks = ", ".join(sorted(ports.authors[""] | ports.authors[call_id]))
    raise AgentError(NOT_FOR_HOOKS.format(tool=tool.name, hooks=hooks))


async def _show_picture(call: ToolCallRun, keep: KeepPicture, data: bytes) -> str:
    words, picture = await keep(data)
    call.parts += (picture,) if picture else ()
    return words


def _describe_call(call: ToolCallRun, tool: Tool, args: dict[str, Any]) -> AskedCall:
    """Describe the call as it would run now. A hook's replacement is not the tool, whatever its name."""
    name = tool.name if any(tool is one for one in call.tools) else f"{tool.name} (put in its place by a hook)"
    return make_asked_call(call.asked.id, name, args, call.state.ports.changed_by.get(call.asked.id, ()))


def _make_ask(call: ToolCallRun, about: AskedCall) -> AskPerson:
    def ask(prompt: str, name: str) -> Any:
        key = f"{call.asked.id}/{call.name}/{name}"
        if key in call.state.ports.answers:
            return call.state.ports.answers[key]  # None: no answer came in time
        raise Pause((Question(key, prompt, call.name, key, calls=(about,)),))

    return ask


def _list_answers(call: ToolCallRun) -> dict[str, Any]:
    """Return the person's answers to this call, by the names of the questions."""
    begin = f"{call.asked.id}/{call.name}/"
    return {key.removeprefix(begin): value for key, value in call.state.ports.answers.items() if key.startswith(begin)}


def as_text(value: Any) -> str:
    """Convert a tool's value for the model: text as it is, everything else as JSON, or at least as words."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except TypeError:
        return str(value)
