"""One answer of the model: asked for, streamed through the interceptors, judged by them, asked for again if need be."""

import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import msgspec

from gateway.agent.model import ModelRequest, ModelResponse, ToolSpec, estimate_tokens
from gateway.agent.operation import TurnNode, run_node
from gateway.agent.turn_state import (
    RETRIES,
    Fields,
    Operation,
    OperationResult,
    TurnEnding,
    TurnState,
    run_operation,
    wait_before_retry,
)
from gateway.errors import ModelError
from gateway.events import Deny, End
from gateway.transcript import Entry, ToolCall, Usage, as_call, as_message, call_from, entry_from

SUMMARY_KEY = "summary"
WINDOW_SHARE = 0.8  # of the window; the rest is for the answer, and for how wrong the estimate is
KEPT_MESSAGES = 6
LEFT_OUT = "[left out: the conversation has become too long]"
SUMMARY_PROMPT = (
    "Sum up the conversation below for yourself, so that you can go on with it. Keep names, numbers, decisions, what "
    "was promised and what is still open. At most 300 words, nothing else."
)


def apply_summary(history: Sequence[Entry], session: dict[str, Any]) -> tuple[tuple[Entry, ...], int]:
    """The history as the model is shown it, and how many of its entries the summary before it stands for."""
    known = session.get(SUMMARY_KEY)
    if not isinstance(known, dict) or not 0 < known.get("upto", 0) <= len(history):
        return tuple(history), 0
    return (_summary_entry_from(str(known["text"])), *history[known["upto"] :]), int(known["upto"])


async def fit_request(run: TurnState, request: ModelRequest) -> ModelRequest:
    """The request, short enough for the model's window."""
    room = int(run.agent.context_window * WINDOW_SHARE)
    if not room or estimate_tokens(request) <= room:
        return request
    count = _count_summarizable(run, request)
    if count:
        before = str((run.ports.session.get(SUMMARY_KEY) or {}).get("text", ""))
        text = await _sum_up(run, before, request.messages[:count])
        system = request.system.replace(_summary_entry_from(before).content, "").rstrip()
        system = "\n".join([part for part in (system, _summary_entry_from(text).content) if part])
        request = replace(request, messages=request.messages[count:], system=system)
        _keep_summary(run, count, text)
    return _drop_tool_results(request, room)


def _count_summarizable(run: TurnState, request: ModelRequest) -> int:
    """So many messages at the beginning are from before this turn and can be summed up."""
    before = [entry for entry in run.view if entry.role != "system"]
    same = 0
    while same < min(len(before), len(request.messages)) and before[same] == request.messages[same]:
        same += 1
    count = max(same - KEPT_MESSAGES, 0)
    while count < same and request.messages[count].role == "tool":  # a result stays with its call
        count += 1
    return count


async def _sum_up(run: TurnState, before: str, messages: Sequence[Entry]) -> str:
    """What the model makes of them; that they are gone, when it fails."""
    lines = "\n".join(f"{entry.role}: {entry.content}" for entry in messages if entry.content)
    text = f"{before}\n{lines[-run.agent.context_window * 3 :]}".strip()
    parts: list[str] = []
    try:
        asked = ModelRequest((Entry("user", text),), SUMMARY_PROMPT, name=run.model_name)
        async with aclosing(run.agent.model.stream(asked)) as chunks:  # type: ignore[type-var]  # an async generator
            async for chunk in chunks:
                parts.append(chunk.text)
                run.usage += chunk.usage or type(run.usage)()
    except ModelError as error:
        log.warning("a conversation could not be summed up (%s); its older part is left out", error)
        return f"{before}\n{LEFT_OUT}".strip()
    return "".join(parts).strip()


def _keep_summary(run: TurnState, count: int, text: str) -> None:
    """From now on the summary stands in the place of what it sums up: in this turn, and in those to come."""
    place = seen = 0
    while seen < count:
        seen += run.view[place].role != "system"
        place += 1
    if run.summed is not None:
        had_note = 1 if run.summed else 0
        run.summed += place - had_note
        times = int((run.ports.session.get(SUMMARY_KEY) or {}).get("times", 0)) + 1
        run.ports.session[SUMMARY_KEY] = {"upto": run.summed, "text": text, "times": times}
        run.ports.emit("session:compress", old_session_id="", in_place=True, compression_count=times)
    run.view = (_summary_entry_from(text), *run.view[place:])


def _drop_tool_results(request: ModelRequest, room: int) -> ModelRequest:
    messages = list(request.messages)
    for place, entry in enumerate(messages[:-1]):
        if estimate_tokens(replace(request, messages=tuple(messages))) <= room:
            break
        if entry.role == "tool" and len(entry.content) > len(LEFT_OUT):
            messages[place] = replace(entry, content=LEFT_OUT)
    return replace(request, messages=tuple(messages))


def _summary_entry_from(text: str) -> Entry:
    return Entry("system", f"Earlier in this conversation: {text}")


log = logging.getLogger(__name__)


async def call_llm(run: TurnState, request: ModelRequest) -> ModelResponse:
    """The model's answer to the request, as the interceptors leave it. An error that they leave is raised."""
    node = TurnNode(
        "call_llm",
        "call_llm",
        lambda: _call_with_retries(run, request),
        _response_as_fields,
        _response_from,
        lambda text: _deny(run, text),
    )
    answer: ModelResponse = await run_node(run, node)
    return answer


async def _call_with_retries(run: TurnState, request: ModelRequest) -> ModelResponse:
    for attempt in range(RETRIES + 1):
        run.partial = ""
        done = await run_operation(run, _operation(run, request))
        answer = _apply_decisions(run, done)
        if done.retry is None or run.finish is not None:
            break
        if attempt == RETRIES:
            log.warning("llm:after asked for another answer %d times in a row; this one is taken", RETRIES)
            break
        run.ports.discard()
        if done.retry.message:
            await run.add(Entry("user", done.retry.message))
            request = replace(request, messages=(*request.messages, run.entries[-1]))
        await wait_before_retry(done.retry)
    if done.error is not None:
        raise done.error
    return answer


def _operation(run: TurnState, request: ModelRequest) -> Operation:
    def ask() -> dict[str, Any]:
        return {
            "messages": [as_message(entry) for entry in request.messages],
            "system": request.system,
            "tools": [msgspec.to_builtins(spec) for spec in request.tools],
            "model": request.name or run.agent.model.name,
            "hop": run.hop,
            "tokens": estimate_tokens(request),
            "result": None,
        }

    async def act(event: Fields | None) -> ModelResponse:
        changed = request if event is None else _request_from(request, event, run.agent.model.name)
        run.offered = frozenset(spec.name for spec in changed.tools)
        return await _stream(run, await fit_request(run, changed))

    def tell(done: OperationResult) -> dict[str, Any]:
        answer = _response_of(run, done)
        return {
            "content": answer.content,
            "tool_calls": [as_call(call) for call in answer.tool_calls],
            "stop": done.left or answer.stop or ("error" if done.error else ""),
            "usage": msgspec.to_builtins(answer.usage),
            "hop": run.hop,
        }

    return Operation("llm:before", "llm:after", ask, act, tell)


def _response_of(run: TurnState, done: OperationResult) -> ModelResponse:
    """What there is of an answer: the model's, a hook's, the text that denies it, or what came before it broke off."""
    if done.given:
        return _response_from(done.value)
    if isinstance(done.value, ModelResponse):
        return done.value
    if isinstance(done.outcome, Deny):
        return ModelResponse(done.outcome.text, stop="denied")
    return ModelResponse(done.outcome.reply if isinstance(done.outcome, End) else run.partial)


def _apply_decisions(run: TurnState, done: OperationResult) -> ModelResponse:
    answer = _response_of(run, done)
    run.usage += answer.usage
    if done.after is not None:
        answer = _apply_rewrite(answer, done.after)
    if not run.end(done.outcome, "llm:before") and isinstance(done.outcome, Deny):
        _deny(run, answer.content)
    run.end(done.verdict, "llm:after", fallback=answer.content)
    return answer


def _apply_rewrite(answer: ModelResponse, after: Fields) -> ModelResponse:
    try:
        calls = tuple(call_from(call) for call in after.get("tool_calls") or ())
    except ValueError as error:
        log.warning("llm:after left tool calls that are none (%s); the model's own are kept", error)
        calls = answer.tool_calls
    return replace(answer, content=str(after.get("content") or ""), tool_calls=calls)


def _deny(run: TurnState, text: str) -> ModelResponse:
    if run.finish is None:
        run.finish = TurnEnding(text, "denied", "denied")
    return ModelResponse(text, stop="denied")


async def _stream(run: TurnState, request: ModelRequest) -> ModelResponse:
    calls: list[ToolCall] = []
    usage, stop, index = Usage(calls=1), "", 0
    async with aclosing(run.agent.model.stream(request)) as chunks:  # type: ignore[type-var]  # an async generator
        async for chunk in chunks:
            if chunk.text:
                _pass_on(run, await _filter_chunk(run, chunk.text, index))
                index += 1
            if run.finish is not None:
                break
            calls += chunk.tool_calls
            usage = replace(chunk.usage, calls=1) if chunk.usage else usage
            stop = chunk.stop or stop
    return ModelResponse(run.partial, tuple(calls), usage, stop)


async def _filter_chunk(run: TurnState, text: str, index: int) -> str:
    if not run.ports.wants("llm:chunk"):
        return text
    event, outcome = await run.fire("llm:chunk", {"chunk": text, "text": run.partial, "index": index, "hop": run.hop})
    if outcome is not None:
        run.end(outcome, "llm:chunk")
        return ""
    left = event.get("chunk")
    return "" if left is None else str(left)


def _pass_on(run: TurnState, text: str) -> None:
    if not text:
        return
    run.partial += text
    if run.streams:
        run.ports.delta(text)


def _request_from(request: ModelRequest, event: Fields, default: str) -> ModelRequest:
    """The request as the interceptors left it. System messages among the messages join the system prompt."""
    try:
        entries = [entry_from(message) for message in event.get("messages") or ()]
        tools = tuple(msgspec.convert(spec, ToolSpec) for spec in event.get("tools") or ())
    except ValueError as error:
        log.warning("llm:before left a request that is none (%s); the original is sent", error)
        return request
    system = [str(event.get("system") or ""), *(entry.content for entry in entries if entry.role == "system")]
    model = str(event.get("model") or "")
    return ModelRequest(
        messages=tuple(entry for entry in entries if entry.role != "system"),
        system="\n".join(part for part in system if part),
        tools=tools,
        name=request.name if model == default else model,
        options=request.options,
    )


def _response_as_fields(answer: ModelResponse) -> dict[str, Any]:
    return {"content": answer.content, "tool_calls": [as_call(call) for call in answer.tool_calls]}


def _response_from(value: Any) -> ModelResponse:
    """An answer that a hook gave: a text, or a mapping with `content` and `tool_calls`."""
    if isinstance(value, ModelResponse):
        return value
    if isinstance(value, dict):
        calls = tuple(call_from(call) for call in value.get("tool_calls") or ())
        return ModelResponse(str(value.get("content") or ""), calls, stop="result")
    return ModelResponse("" if value is None else str(value), stop="result")
